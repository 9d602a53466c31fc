// Encoders of text as packages of CoreML: the vectors of the evaluator are those of the CPU, for a text with padding behind it.
#include "coreml/evaluator.h"
#include "models/tiny_sentence_model.h"
#include "rlx/convert.h"
#include "rlx/export.h"
#include "rlx/sentence_encoder.h"

namespace rlx::test {
namespace {

namespace fs = std::filesystem;

const std::vector<std::int32_t> text{2, 5, 6, 7, 3};

/// The inputs of a package of eight tokens.
void write_inputs(const fs::path& folder) {
  constexpr std::int64_t length = 8;
  fs::create_directories(folder);
  Array ids(i32, {1, length}), mask(i32, {1, length}), types(i32, {1, length});
  for (std::size_t i = 0; i < text.size(); ++i) {
    ids.set_int(static_cast<std::int64_t>(i), text[i]);
    mask.set_int(static_cast<std::int64_t>(i), 1);
  }
  save_npy(folder / "input_ids.npy", ids);
  save_npy(folder / "attention_mask.npy", mask);
  save_npy(folder / "token_type_ids.npy", types);
}

void export_model(const fs::path& model, const fs::path& folder, int target = 0) {
  export_coreml(folder / "model.mlpackage", SentenceEncoder::saved(model), {.sizes = {{"B", 1}, {"S", 8}}, .minimum_target = target});
  write_inputs(folder / "in");
}

void expect_vectors(const fs::path& model, const fs::path& folder) {
  SCOPED_TRACE(model.string());
  ASSERT_FALSE(fs::exists(folder / "error.txt"));
  const Session session(Device::cpu(), {.round_activations = false});
  const SentenceEncoder encoder = SentenceEncoder::open(model, session);
  const TokenRow row{.ids = text};
  const Array wanted = encoder.executable().run(encoder.inputs({&row, 1})).at("embedding");
  const Array seen = load_npy(folder / "out" / "embedding.npy");
  ASSERT_EQ(seen.shape(), wanted.shape());
  for (std::int64_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(seen.get_double(i), wanted.get_double(i), 4e-6) << "element " << i;
}

TEST(CoreMl, Encoders) {
  if (!has_coremltools()) GTEST_SKIP() << "no coremltools";
  const TinySentenceModel model;
  const TemporaryFolder folder;
  std::map<std::string, fs::path> models{{"folder", model.path()}};
  for (const char* type : {"F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "IQ4_NL"}) {
    models[type] = folder / fmt::format("{}.gguf", type);
    quantize(model.path(), models[type], {.type = type});
  }
  for (const auto& [name, path] : models) {
    export_model(path, folder / name);
    for (const int target : {16, 26}) export_model(path, folder / fmt::format("{}_{}", name, target), target);
  }
  run_packages(folder.path());
  for (const auto& [name, path] : models)
    for (const char* target : {"", "_16", "_26"}) expect_vectors(path, folder / (name + target));
}

}  // namespace
}  // namespace rlx::test
