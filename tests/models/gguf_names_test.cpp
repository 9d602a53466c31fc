// The names of `tokenizer.ggml.pre`: ids that llama.cpp makes of hard texts under each (fixtures/tokenizers/record_gguf_names.py).
#include <algorithm>

#include <gtest/gtest.h>

#include "fixture.h"
#include "formats/gguf/gguf_writer.h"
#include "formats/json/json.h"
#include "formats/temporary_folder.h"
#include "text/tokenizer/files/gguf_patterns.h"
#include "text/tokenizer/files/gguf_tokenizer.h"

namespace rlx {
namespace {

using test::TemporaryFolder;

const json::Value& recorded() {
  static const json::Value value = json::read_file(test::fixture("tokenizers/gguf-names/names.json"));
  return value;
}

/// A vocabulary of the fixtures under another name.
Tokenizer tokenizer_named(const std::string& name, const std::string& tokens, const std::string& model = "gpt2") {
  const TemporaryFolder folder;
  const GgufFile vocabulary = GgufFile::open(test::fixture("tokenizers/gguf-names/" + tokens + ".gguf"));
  GgufMetadata metadata;
  metadata.copy(vocabulary.metadata());
  metadata.set("tokenizer.ggml.model", model);
  metadata.set("tokenizer.ggml.pre", name);
  GgufWriter(folder / "v.gguf", metadata, {}).commit();
  return read_gguf_tokenizer(GgufFile::open(folder / "v.gguf"));
}

class GgufName : public testing::TestWithParam<std::string> {};

TEST_P(GgufName, CutsTextsAsRecorded) {
  for (const json::Value& group : recorded().at("groups")) {
    if (std::ranges::count(group.at("names").get<std::vector<std::string>>(), GetParam()) == 0) continue;
    const Tokenizer tokenizer = tokenizer_named(GetParam(), group.at("tokens"));
    for (std::size_t i = 0; i < recorded().at("texts").size(); ++i) {
      const std::string text = recorded().at("texts")[i];
      EXPECT_EQ(tokenizer.encode_ids(text, false), group.at("ids")[i].get<std::vector<std::int32_t>>()) << i << ": " << text;
    }
  }
}

std::vector<std::string> recorded_names() {
  std::vector<std::string> names;
  for (const json::Value& group : recorded().at("groups"))
    for (const json::Value& name : group.at("names")) names.push_back(name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(All, GgufName, testing::ValuesIn(recorded_names()), [](const auto& each) {
  std::string name = each.param;
  std::ranges::replace_if(name, [](unsigned char c) { return !std::isalnum(c); }, '_');
  return name;
});

// Files of jina-embeddings-v2-base-zh say so where others name the kind of model.
TEST(GgufNames, WhitespaceMayBeTheNameOfTheModel) {
  const std::string text = "  Ünïcödé\u00a0WORLD \n it's";
  const auto ids = tokenizer_named("default", "words", "whitespace").encode_ids(text, false);
  EXPECT_EQ(ids, tokenizer_named("whitespace", "words").encode_ids(text, false));
  EXPECT_NE(ids, tokenizer_named("default", "words").encode_ids(text, false));
}

TEST(GgufNames, AllThatAreKnownAreRecorded) {
  const std::vector<std::string> names = recorded_names();
  for (const GgufPattern& pattern : gguf_patterns())
    for (const std::string_view name : pattern.names) EXPECT_EQ(std::ranges::count(names, name), 1) << name;
}

}  // namespace
}  // namespace rlx
