#include <gtest/gtest.h>

#include <algorithm>

#include "fixture.h"
#include "formats/json/json.h"
#include "text/tokenizer/files/open_tokenizer.h"
#include "text/tokenizer/text_stream.h"
#include "text/tokenizer/tokenizer.h"

namespace rlx {
namespace {

using json::Value;

std::vector<std::int32_t> ids_in(const Value& value) { return value.get<std::vector<std::int32_t>>(); }

std::string streamed(const Tokenizer& tokenizer, const std::vector<std::int32_t>& ids, bool skip_special_tokens) {
  TextStream stream(tokenizer, skip_special_tokens);
  std::string text;
  for (const std::int32_t id : ids) text += stream.push(id);
  return text + stream.finish();
}

class TokenizerFixture : public testing::TestWithParam<const char*> {};

// Recorded from `tokenizers` 0.23: 51 texts of all kinds of scripts, spaces, control characters and special tokens.
TEST_P(TokenizerFixture, GivesTheRecordedTokensAndTexts) {
  const std::string folder = std::string("tokenizers/") + GetParam();
  const Tokenizer tokenizer = Tokenizer::open(test::fixture((folder + "/tokenizer.json").c_str()));
  const Value cases = json::read_file(test::fixture((folder + "/cases.json").c_str()));
  ASSERT_EQ(cases.size(), 51u);
  for (const Value& item : cases) {
    SCOPED_TRACE(item.at("text").dump());
    const auto text = item.at("text").get<std::string>();
    const Encoding plain = tokenizer.encode(text, false);
    EXPECT_EQ(plain.ids, ids_in(item.at("ids")));
    EXPECT_EQ(plain.tokens, item.at("tokens").get<std::vector<std::string>>());
    EXPECT_EQ(tokenizer.encode(text).ids, ids_in(item.at("ids_special")));
    EXPECT_EQ(tokenizer.encode_ids(text, false), ids_in(item.at("ids")));
    EXPECT_EQ(tokenizer.encode_ids(text), ids_in(item.at("ids_special")));
    EXPECT_EQ(tokenizer.decode(plain.ids, false), item.at("decoded").get<std::string>());
    EXPECT_EQ(tokenizer.decode(plain.ids, true), item.at("decoded_skip").get<std::string>());
    EXPECT_EQ(streamed(tokenizer, plain.ids, false), item.at("decoded").get<std::string>());
    EXPECT_EQ(streamed(tokenizer, plain.ids, true), item.at("decoded_skip").get<std::string>());
  }
}

INSTANTIATE_TEST_SUITE_P(All, TokenizerFixture, testing::Values("bpe-gpt2", "bpe-llama2", "bpe-llama3", "unigram-t5", "wordpiece-uncased"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::erase(name, '-');
                           return name;
                         });

/// Puts the rules of unigram-t5 where a recorded variant only names them.
void restore_charsmap(Value& node, const Value& charsmap) {
  if (node.is_object() && node.contains("precompiled_charsmap")) node["precompiled_charsmap"] = charsmap;
  if (!node.is_structured()) return;
  for (Value& child : node) restore_charsmap(child, charsmap);
}

// Every component with random settings on random texts, recorded from `tokenizers` 0.23 (record_components.py beside the fixture).
TEST(TokenizerComponents, GiveTheRecordedTokensAndTexts) {
  const auto folder = test::fixture("tokenizers");
  const Value charsmap =
      json::read_file(folder / "unigram-t5/tokenizer.json").at("normalizer").at("normalizers").at(0).at("precompiled_charsmap");
  std::size_t compared = 0;
  for (const Value& variant : json::read_file(folder / "components.json")) {
    Value file = json::read_file(folder / variant.at("base").get<std::string>() / "tokenizer.json");
    for (const auto& [name, value] : variant.at("changes").items()) file[name] = value;
    for (const auto& [name, value] : variant.at("model").items()) file["model"][name] = value;
    for (const Value& token : variant.at("added_tokens")) file["added_tokens"].push_back(token);
    restore_charsmap(file["normalizer"], charsmap);
    const Tokenizer tokenizer = Tokenizer::parse(file.dump(), "tokenizer.json");
    for (const Value& item : variant.at("cases")) {
      SCOPED_TRACE(variant.at("base").dump() + variant.at("changes").dump() + variant.at("model").dump() + "\n" + item.at("text").dump());
      const auto text = item.at("text").get<std::string>();
      const Encoding plain = tokenizer.encode(text, false);
      EXPECT_EQ(plain.ids, ids_in(item.at("ids")));
      EXPECT_EQ(plain.tokens, item.at("tokens").get<std::vector<std::string>>());
      EXPECT_EQ(tokenizer.encode_ids(text), ids_in(item.at("ids_special")));
      EXPECT_EQ(tokenizer.decode(plain.ids, false), item.at("decoded").get<std::string>());
      EXPECT_EQ(tokenizer.decode(plain.ids, true), item.at("decoded_skip").get<std::string>());
      ++compared;
    }
  }
  EXPECT_GT(compared, 600u);
}

/// The ids of a text that is cut at these tokens: each of them is a token, and what lies between two is a text of its own.
std::vector<std::int32_t> ids_between(const Tokenizer& tokenizer, std::string_view text, const std::vector<std::string>& special) {
  std::vector<std::int32_t> ids;
  const auto append = [&](std::string_view part) {
    for (const std::int32_t id : tokenizer.encode_ids(part, false)) ids.push_back(id);
  };
  while (true) {
    const auto next = std::ranges::min_element(special, {}, [&](const std::string& token) { return text.find(token); });
    const std::size_t at = text.find(*next);
    append(text.substr(0, at));
    if (at == std::string_view::npos) return ids;
    ids.push_back(tokenizer.token_to_id(*next).value());
    text.remove_prefix(at + next->size());
  }
}

bool has_any(std::string_view text, const std::vector<std::string>& tokens) {
  return std::ranges::any_of(tokens, [&](const std::string& token) { return text.find(token) != std::string_view::npos; });
}

// The rule of special tokens in texts, by what `tokenizers` recorded.
TEST(TokenizerFixtures, SpecialTokensCutATextIntoTextsOfTheirOwn) {
  const auto folder = test::fixture("tokenizers/bpe-llama2");
  const Tokenizer tokenizer = Tokenizer::open(folder / "tokenizer.json");
  const std::vector<std::string> special{"<unk>", "<s>", "</s>"};
  std::size_t cut = 0;
  for (const Value& item : json::read_file(folder / "cases.json")) {
    const auto text = item.at("text").get<std::string>();
    cut += has_any(text, special);
    EXPECT_EQ(ids_between(tokenizer, text, special), ids_in(item.at("ids"))) << text;
  }
  EXPECT_EQ(cut, 2u);
}

struct ModelFile {
  const char* folder;
  const char* file;
  std::vector<std::string> special;
  std::size_t texts_with_special;
};

class TokenizerModel : public testing::TestWithParam<ModelFile> {};

// Recorded from the libraries that own these formats (record_models.py beside the fixtures). Special tokens in a text are text there; here
// they are tokens, as in a tokenizer.json made of the same model: the text of a chat template has them.
TEST_P(TokenizerModel, GivesTheRecordedIdsAndTexts) {
  const std::filesystem::path folder = test::fixture("tokenizers") / GetParam().folder;
  const Tokenizer tokenizer = open_tokenizer(folder / GetParam().file);
  const Value cases = json::read_file(folder / "cases.json");
  ASSERT_EQ(cases.size(), 51u);
  std::size_t with_special = 0;
  for (const Value& item : cases) {
    SCOPED_TRACE(item.at("text").dump());
    const auto text = item.at("text").get<std::string>();
    if (has_any(text, GetParam().special)) {
      const auto expected = ids_between(tokenizer, text, GetParam().special);
      EXPECT_NE(expected, ids_in(item.at("ids")));
      EXPECT_EQ(tokenizer.encode_ids(text, false), expected);
      EXPECT_EQ(tokenizer.encode(text, false).ids, expected);
      ++with_special;
      continue;
    }
    EXPECT_EQ(tokenizer.encode_ids(text, false), ids_in(item.at("ids")));
    EXPECT_EQ(tokenizer.encode(text, false).ids, ids_in(item.at("ids")));
    EXPECT_EQ(tokenizer.encode_ids(text), ids_in(item.at("ids_special")));
    if (!item.at("decoded").is_null()) {
      EXPECT_EQ(tokenizer.decode(ids_in(item.at("ids"))), item.at("decoded").get<std::string>());
      EXPECT_EQ(streamed(tokenizer, ids_in(item.at("ids")), true), item.at("decoded").get<std::string>());
    }
  }
  EXPECT_EQ(with_special, GetParam().texts_with_special);
}

INSTANTIATE_TEST_SUITE_P(All, TokenizerModel,
                         testing::Values(ModelFile{"sentencepiece-bpe", "tokenizer.model", {"<unk>", "<s>", "</s>"}, 2},
                                         ModelFile{"sentencepiece-unigram", "tokenizer.model", {"<unk>", "<s>", "</s>"}, 2},
                                         ModelFile{"tekken", "tekken.json", {"<unk>", "<s>", "</s>", "[INST]", "[/INST]"}, 3}),
                         [](const auto& info) {
                           std::string name = info.param.folder;
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace rlx
