// What `rlx convert`, `rlx quantize` and `rlx tokenize` do, by public headers alone.
#include <gtest/gtest.h>

#include "fixture.h"
#include "formats/temporary_folder.h"
#include "models/tiny_language_model.h"
#include "rlx/convert.h"
#include "rlx/model.h"
#include "rlx/text_tokenizer.h"

namespace rlx {
namespace {

using test::error_of;
using test::fixture;
using test::TemporaryFolder;

std::vector<std::int32_t> greedy_ids(const std::filesystem::path& path) {
  const auto prompt = test::recorded_ids("prompt_ids"), all = test::recorded_ids("greedy_ids");
  Model model = load(path, {.context = 40, .cache = CacheType::f32});
  Generation answer = model.generate(prompt, {.max_tokens = static_cast<std::int64_t>(all.size() - prompt.size())});
  std::vector<std::int32_t> ids = prompt;
  while (const auto id = answer.next_token()) ids.push_back(*id);
  return ids;
}

TEST(Convert, GoesFromAFolderToAFileAndBack) {
  const TemporaryFolder made;
  const QuantizeReport report = convert(fixture("hf/llama"), made / "m.gguf");
  EXPECT_EQ(report.types.size(), 1u);
  EXPECT_EQ(report.types[0].type, "F32");
  EXPECT_EQ(report.types[0].error_squares, 0);
  EXPECT_TRUE(convert(made / "m.gguf", made / "back").types.empty());
  EXPECT_TRUE(convert(made / "m.gguf", made / "m.safetensors", {.dtype = bf16}).types.empty());
  for (const char* name : {"m.gguf", "back"}) EXPECT_EQ(greedy_ids(made / name), test::recorded_ids("greedy_ids")) << name;
  EXPECT_LT(std::filesystem::file_size(made / "m.safetensors"), 0.6 * static_cast<double>(std::filesystem::file_size(made / "m.gguf")));
}

TEST(Convert, GivesMatricesTheTypesAskedFor) {
  const TemporaryFolder made;
  const QuantizeReport report =
      quantize(fixture("gguf_models/llama.gguf"), made / "q", {.type = "Q8_0", .pure = true, .tensor_types = {{"attn_q", "Q4_0"}}});
  std::vector<std::string> types;
  for (const QuantizedType& type : report.types) types.push_back(type.type);
  EXPECT_EQ(std::ranges::count(types, "Q4_0"), 1);
  EXPECT_EQ(std::ranges::count(types, "Q8_0"), 1);
}

TEST(Convert, QuantizesFoldersToo) {
  const TemporaryFolder made;
  quantize(fixture("hf/llama"), made / "q", {.type = "Q8_0"});
  convert(fixture("hf/llama"), made / "c.gguf", {.type = "Q8_0"});
  EXPECT_EQ(test::read_text(made / "q"), test::read_text(made / "c.gguf"));
}

TEST(Convert, SaysWhatItCannotDo) {
  const TemporaryFolder made;
  const auto error = [&](const char* in, const char* out, const ConvertOptions& options) {
    return error_of([&] { convert(fixture(in), made / out, options); });
  };
  EXPECT_NE(error("hf/llama", "m.bin", {}).find("must end with .gguf or .safetensors, or be that of a folder"), std::string::npos);
  EXPECT_NE(error("hf/llama", "folder", {}).find("a folder is made of a GGUF file"), std::string::npos);
  EXPECT_NE(error("hf/llama/model.safetensors", "m.gguf", {}).find("its folder, with config.json, does"), std::string::npos);
  EXPECT_NE(error("hf/llama", "m.gguf", {.type = "Q9"}).find("Q9"), std::string::npos);
  EXPECT_NE(error("hf/llama", "m.gguf", {.type = "Q8_0", .tensor_types = {{"x", "Q9"}}}).find("tensor type 'x': unknown type 'Q9'"),
            std::string::npos);
  EXPECT_NE(error("hf/llama", "m.gguf", {.type = "Q8_0", .tensor_types = {{"(", "Q4_0"}}}).find("tensor type '(': "), std::string::npos);
  for (const char* pattern : {"no such name", "attn_norm", "attn_q"})  // nothing, what keeps its type, what has one already
    EXPECT_EQ(error("hf/llama", "m.gguf", {.type = "Q8_0", .tensor_types = {{"attn_q", "Q4_0"}, {pattern, "Q4_0"}}}),
              fmt::format("tensor type '{}': no matrix has such a name, or none that an earlier one leaves", pattern));
  EXPECT_EQ(error("hf/llama", "m.safetensors", {.dtype = i32}), "dtype i32 (allowed: f32, f16, bf16)");
  EXPECT_EQ(error("hf_options/embedding-gemma", "m.safetensors", {}),
            fixture("hf_options/embedding-gemma").string() +
                ": '2_Dense' has weights of its own, for which a .safetensors file has no place (a "
                ".gguf file has; of the encoder alone: name its file)");
  EXPECT_NE(error("lora/llama", "a.gguf", {}).find("--base names the model"), std::string::npos);
  EXPECT_EQ(made.entries(), 0);
}

TEST(TextTokenizer, NeedsNoModel) {
  const TextTokenizer tokenizer = TextTokenizer::open(fixture("tokenizers/wordpiece-uncased"));
  const std::vector<std::int32_t> ids = tokenizer.encode("Hello", false);
  EXPECT_EQ(ids, (std::vector<std::int32_t>{636, 398, 178}));  // as tokenizer_test has them
  EXPECT_EQ(tokenizer.encode("Hello").size(), ids.size() + 2);
  EXPECT_EQ(tokenizer.decode(ids), "hello");
  EXPECT_EQ(tokenizer.id_of("[CLS]"), 2);
  EXPECT_EQ(tokenizer.vocab_size(), 640);
}

}  // namespace
}  // namespace rlx
