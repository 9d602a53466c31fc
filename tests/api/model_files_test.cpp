// What the commands inspect, verify and template do, by the public headers alone: this folder sees no others.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "fixture.h"
#include "rlx/chat_template.h"
#include "rlx/error.h"
#include "rlx/model_file.h"
#include "rlx/progress.h"
#include "rlx/text_tokenizer.h"
#include "rlx/verify.h"

namespace rlx::test {
namespace {

std::string value_of(const ModelFile& file, std::string_view key) {
  for (const MetadataEntry& entry : file.metadata())
    if (entry.key == key) return entry.type + " " + entry.value;
  return "none";
}

TEST(ModelFile, OfAGgufFileHasMetadataAndTensors) {
  const ModelFile file = ModelFile::open(fixture("gguf/alignment64.gguf"));
  EXPECT_EQ(file.summary().format, "GGUF version 3");
  EXPECT_EQ(file.summary().architecture, "rlx-test");
  EXPECT_EQ(file.summary().values, 6181);
  EXPECT_EQ(value_of(file, "test.int32"), "i32 -2147483648");
  EXPECT_EQ(value_of(file, "general.architecture"), "string \"rlx-test\"");
  ASSERT_EQ(file.tensors().size(), 9u);
  for (const TensorEntry& tensor : file.tensors()) EXPECT_EQ(file.array(tensor.name).shape(), tensor.shape) << tensor.name;
  EXPECT_THROW(file.array("none"), Error);
}

TEST(ModelFile, OfAFolderHasItsConfigAndNoMetadata) {
  const ModelFile file = ModelFile::open(fixture("hf/llama"));
  EXPECT_EQ(file.summary().architecture, "llama");
  EXPECT_NE(file.summary().hyper_parameters.find("\"model_type\":\"llama\""), std::string::npos) << file.summary().hyper_parameters;
  EXPECT_TRUE(file.metadata().empty());
  EXPECT_FALSE(file.summary().adapter);
  EXPECT_EQ(ModelFile::open(fixture("lora/llama")).summary().adapter.value().matrices, 14);
  EXPECT_THROW(ModelFile::open(fixture("hf/none")), Error);
}

TEST(VerifyModel, FindsTheRecordingOfAnotherImplementationInBounds) {
  std::size_t loaded = 0;
  listen_to_progress([&](std::string_view work, std::size_t done, std::size_t total) { loaded += work == "loading" && done == total; });
  const std::vector<VerifiedTensor> tensors = verify_folder(fixture("hf/llama"), Session());
  listen_to_progress({});
  EXPECT_GE(loaded, 1u);
  EXPECT_GE(tensors.size(), 2u);
  for (const VerifiedTensor& tensor : tensors) EXPECT_TRUE(tensor.passed()) << tensor.name;
  const std::vector<VerifiedTensor> strange = verify_model(fixture("hf/gpt2"), fixture("hf/llama"), Session());
  EXPECT_TRUE(std::ranges::none_of(strange, &VerifiedTensor::passed)) << "another model's recording";
  EXPECT_THROW(verify_folder(fixture("sentence_model"), Session()), Error);
}

constexpr const char* small_template =
    "{% for t in tools or [] %}<{{ t.function.name }}>{% endfor %}{% for m in messages %}{{ m.role }}:{{ m.content }};"
    "{% for c in m.tool_calls %}{{ c.function.name }}({{ c.function.arguments.city }}){% endfor %}{% endfor %}"
    "{{ documents[0].title if documents }}{{ mood }}{{ strftime_now('%F') }}{{ '>' if add_generation_prompt }}";
constexpr const char* messages = R"([{"role": "user", "content": "Hi"},
  {"role": "assistant", "content": "", "tool_calls": [{"type": "function", "function": {"name": "f", "arguments": {"city": "Rome"}}}]}])";

TEST(PromptTemplate, TakesToolsDocumentsVariablesAndATime) {
  const std::filesystem::path file = std::filesystem::path(testing::TempDir()) / "rlx_api_template.jinja";
  std::ofstream(file) << small_template;
  const PromptTemplate opened = PromptTemplate::open(file);
  std::tm now{};
  now.tm_mday = 2, now.tm_year = 126;
  EXPECT_EQ(opened.prompt(messages, {.now = now}), "user:Hi;assistant:;f(Rome)2026-01-02");
  EXPECT_EQ(opened.prompt(messages, {.tools = R"([{"type": "function", "function": {"name": "f"}}])",
                                     .variables = {{"mood", "\"!\""}, {"documents", R"([{"title": "T"}])"}},
                                     .add_generation_prompt = true,
                                     .now = now}),
            "<f>user:Hi;assistant:;f(Rome)T!2026-01-02>");
  EXPECT_THROW(opened.prompt("[]"), Error);
  EXPECT_THROW(opened.prompt(messages, {.tools = ""}), Error) << "no JSON";
  EXPECT_THROW(opened.prompt(messages, {.variables = {{"mood", "!"}}}), Error);
  EXPECT_THROW(PromptTemplate::open(file, "rag"), Error);
  std::filesystem::remove(file);
}

TEST(TextTokenizer, NamesItsTokens) {
  const TextTokenizer tokenizer = TextTokenizer::open(fixture("tokenizers/wordpiece-uncased"));
  for (std::int32_t id : tokenizer.encode("Hello, world")) EXPECT_EQ(tokenizer.id_of(tokenizer.token_of(id)), id);
  EXPECT_THROW(tokenizer.token_of(1 << 30), Error);
}

}  // namespace
}  // namespace rlx::test
