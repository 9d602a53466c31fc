#include "models/conversion/gguf_vocabulary.h"

#include <chrono>

#include "base/base64.h"
#include "fixture.h"
#include "formats/gguf/gguf.h"
#include "formats/gguf/gguf_writer.h"
#include "formats/json/json.h"
#include "formats/temporary_folder.h"
#include "models/conversion/splitting_name.h"
#include "text/tokenizer/files/gguf_patterns.h"
#include "text/tokenizer/files/gguf_tokenizer.h"
#include "text/tokenizer/files/open_tokenizer.h"
#include "text/tokenizer/files/tokenizer_files.h"
#include "text/tokenizer/tokenizer.h"
#include "text/unicode/byte_chars.h"

namespace rlx {
namespace {

using test::error_of;
using test::TemporaryFolder;

/// The keys that a folder gets, read back from a file.
GgufFile described(const TemporaryFolder& folder, std::int64_t vocab_size) {
  GgufMetadata metadata;
  describe_tokenizer(folder.path(), vocab_size, metadata);
  GgufWriter(folder / "m.gguf", metadata, {}).commit();
  return GgufFile::open(folder / "m.gguf");
}

GgufFile described(const TemporaryFolder& folder, std::string_view tokenizer, std::int64_t vocab_size) {
  test::write_text(folder / "tokenizer.json", tokenizer);
  return described(folder, vocab_size);
}

using Texts = std::vector<std::string_view>;
using Numbers = std::vector<std::int64_t>;

TEST(GgufVocabulary, ByteLevelBpe) {
  const TemporaryFolder folder;
  test::write_text(folder / "config.json", R"({"eos_token_id": [3, 4]})");
  test::write_text(folder / "tokenizer_config.json",
                   R"({"bos_token": {"content": "<s>"}, "add_bos_token": true, "chat_template": "{{ x }}"})");
  const GgufFile file = described(folder, R"({"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false},
      "added_tokens": [{"id": 3, "content": "<s>", "special": true}, {"id": 4, "content": "<u>", "special": false}],
      "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": [["a", "b"]]}})",
                                  6);
  EXPECT_EQ(file.value("tokenizer.ggml.model").string(), "gpt2");
  EXPECT_EQ(file.value("tokenizer.ggml.pre").string(), "gpt-2");
  EXPECT_EQ(file.value("tokenizer.ggml.tokens").strings(), (Texts{"a", "b", "ab", "<s>", "<u>", "[PAD5]"}));
  EXPECT_EQ(file.value("tokenizer.ggml.token_type").integers(), (Numbers{1, 1, 1, 3, 4, 5}));
  EXPECT_EQ(file.value("tokenizer.ggml.merges").strings(), Texts{"a b"});
  EXPECT_EQ(file.value("tokenizer.ggml.bos_token_id").integer(), 3);
  EXPECT_EQ(file.value("tokenizer.ggml.eos_token_id").integer(), 3);
  EXPECT_TRUE(file.value("tokenizer.ggml.add_bos_token").boolean());
  EXPECT_EQ(file.value("tokenizer.chat_template").string(), "{{ x }}");
}

/// As the tokens of German letters in DeepSeek's files, which are not written in the characters of bytes: "ü" there would be the byte FC.
TEST(GgufVocabulary, UserDefinedTokensOfByteLevelVocabulariesAreTextAsItStands) {
  const TemporaryFolder folder;
  test::write_text(folder / "config.json", "{}");
  const GgufFile file = described(folder, R"({"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false},
      "added_tokens": [{"id": 4, "content": "ü", "special": false}, {"id": 5, "content": "a ü\n", "special": false}],
      "model": {"type": "BPE", "vocab": {"a": 0, "Ã": 1, "¼": 2, "Ã¼": 3}, "merges": [["Ã", "¼"]]}})",
                                  6);
  const Tokenizer tokenizer = read_gguf_tokenizer(file);
  EXPECT_EQ(tokenizer.encode_ids("aüa"), (std::vector<std::int32_t>{0, 4, 0}));
  EXPECT_EQ(tokenizer.encode_ids("a ü\na"), (std::vector<std::int32_t>{5, 0}));
  EXPECT_EQ(tokenizer.decode(std::vector<std::int32_t>{0, 4, 5, 3, 0}, true), "aüa ü\nüa");
  EXPECT_EQ(tokenizer.bytes_of(4), "ü");
  EXPECT_EQ(tokenizer.bytes_of(5), "a ü\n");
  EXPECT_EQ(tokenizer.id_to_token(4), "ü");
}

TEST(GgufVocabulary, AllChatTemplatesGoThereAndBack) {
  const TemporaryFolder folder;
  test::write_text(folder / "config.json", "{}");
  test::write_text(folder / "chat_template.jinja", "J");  // without a tokenizer_config.json
  constexpr std::string_view tokenizer = R"({"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false},
      "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": [["a", "b"]]}})";
  const auto config_of = [](const GgufFile& file) { return json::parse(tokenizer_files(file).at("tokenizer_config.json"), "config"); };
  const GgufFile one = described(folder, tokenizer, 3);
  EXPECT_EQ(one.value("tokenizer.chat_template").string(), "J");
  EXPECT_EQ(one.find_value("tokenizer.chat_templates"), nullptr);
  EXPECT_EQ(config_of(one).at("chat_template"), "J");
  std::filesystem::create_directory(folder / "additional_chat_templates");
  test::write_text(folder / "additional_chat_templates/tool_use.jinja", "T");
  const GgufFile two = described(folder, tokenizer, 3);
  EXPECT_EQ(two.value("tokenizer.chat_template.tool_use").string(), "T");
  EXPECT_EQ(two.value("tokenizer.chat_templates").strings(), Texts{"tool_use"});
  EXPECT_EQ(config_of(two).at("chat_template"), json::parse(R"([{"name": "default", "template": "J"},
      {"name": "tool_use", "template": "T"}])",
                                                            "expected"));
}

json::Value split(std::string_view pattern) {
  return {{"type", "Split"}, {"pattern", {{"Regex", pattern}}}, {"behavior", "Isolated"}, {"invert", false}};
}

json::Value byte_level(bool use_regex) { return {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", use_regex}}; }

json::Value cut_by(const std::vector<json::Value>& parts, bool whole_words_first) {
  return {{"pre_tokenizer", {{"type", "Sequence"}, {"pretokenizers", parts}}},
          {"model", {{"type", "BPE"}, {"ignore_merges", whole_words_first}, {"vocab", {{"a", 0}}}, {"merges", json::Value::array()}}}};
}

/// The text that tells them apart tells all of them apart.
TEST(SplittingName, IsFoundOfEveryPatternThatHasOne) {
  for (const GgufPattern& pattern : gguf_patterns()) {
    if (pattern.alphabet != GgufAlphabet::bytes) continue;
    std::vector<json::Value> parts;
    for (std::string_view each : pattern.patterns) parts.push_back(split(each));
    parts.push_back(byte_level(false));
    const json::Value root = cut_by(parts, pattern.whole_words_first);
    const GgufPattern& found = find_gguf_pattern(splitting_name(JsonField(root, "tokenizer.json")), "test");
    if (pattern.names.front() != "bailingmoe") EXPECT_EQ(found.patterns, pattern.patterns) << pattern.names.front();
    else EXPECT_EQ(found.names.front(), "qwen2");  // the same, with quantifiers that never give back
    EXPECT_EQ(found.whole_words_first, pattern.whole_words_first) << pattern.names.front();
  }
}

/// The pre-tokenizers of public models, as their tokenizer.json spells them.
TEST(SplittingName, DoesNotDependOnTheSpelling) {
  const json::Value digits{{"type", "Digits"}, {"individual_digits", true}};
  json::Value removed =
      split(R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)");
  removed["behavior"] = "Removed", removed["invert"] = true;
  const auto name = [](const std::vector<json::Value>& parts) {
    const json::Value root = cut_by(parts, false);
    return std::string(splitting_name(JsonField(root, "tokenizer.json")));
  };
  EXPECT_EQ(name({byte_level(true)}), "gpt-2");
  EXPECT_EQ(name({split(R"('(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)"), byte_level(false)}), "gpt-2");
  EXPECT_EQ(name({digits, byte_level(true)}), "starcoder");
  EXPECT_EQ(name({removed, byte_level(false)}), "qwen2");
}

/// Falcon cuts digits off the spaces before them, which its files do not say: no token of its vocabulary has both.
TEST(SplittingName, IsThatOfTheSameTokensWhereWordsDiffer) {
  json::Value root = cut_by({{{"type", "Punctuation"}, {"behavior", "Contiguous"}},
                             byte_level(true),
                             {{"type", "Digits"}, {"individual_digits", false}},
                             split("[0-9][0-9][0-9]")},
                            false);
  const auto name = [&] {
    const json::Value file = json::parse(root.dump(), "tokenizer.json");
    return std::string(splitting_name(JsonField(file, "tokenizer.json")));
  };
  EXPECT_NE(error_of(name).find("no name in GGUF files"), std::string::npos) << "a vocabulary without the bytes";
  json::Value& vocabulary = root["model"]["vocab"] = json::Value::object();
  for (int byte = 0; byte < 256; ++byte) vocabulary[std::string(byte_chars::character(static_cast<std::uint8_t>(byte)))] = byte;
  const auto add = [&](std::string_view left, std::string_view right) {
    vocabulary[fmt::format("{}{}", left, right)] = vocabulary.size();
    root["model"]["merges"].push_back(fmt::format("{} {}", left, right));
  };
  add("1", "2"), add("12", "3"), add("12", "4"), add(".", "."), add("=", "1"), add("\u0120", "`"), add("\u0120", "a"), add("o", "'");
  add("'", "s"), add("\u0120", "\u0120");
  EXPECT_EQ(name(), "falcon");
  add("\u0120", "1");
  EXPECT_NE(error_of(name).find("no name in GGUF files"), std::string::npos) << "a token that the cut goes through";
}

/// Each way that has a name cuts one of the tokens, which are not in the text of many kinds.
TEST(SplittingName, IsNotThatOfOtherCutsThroughTokens) {
  json::Value root = cut_by({split("@"), byte_level(false)}, false);
  json::Value& vocabulary = root["model"]["vocab"] = json::Value::object();
  for (int byte = 0; byte < 256; ++byte) vocabulary[std::string(byte_chars::character(static_cast<std::uint8_t>(byte)))] = byte;
  vocabulary["z."] = 256, vocabulary["1z"] = 257;
  root["model"]["merges"] = {"z .", "1 z"};
  EXPECT_NE(error_of([&] {
              const json::Value file = json::parse(root.dump(), "tokenizer.json");
              splitting_name(JsonField(file, "tokenizer.json"));
            }).find("no name in GGUF files"),
            std::string::npos);
}

TEST(GgufVocabulary, OfSeveralTokensBeforeATextOneIsLost) {
  const TemporaryFolder folder;
  test::write_text(folder / "config.json", "{}");
  test::write_text(folder / "tokenizer.json", R"({"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false},
      "post_processor": {"type": "TemplateProcessing", "pair": [],
        "single": [{"SpecialToken": {"id": "a"}}, {"SpecialToken": {"id": "b"}}, {"Sequence": {"id": "A"}}],
        "special_tokens": {"a": {"id": "a", "ids": [0], "tokens": ["a"]}, "b": {"id": "b", "ids": [1], "tokens": ["b"]}}},
      "model": {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": []}})");
  GgufMetadata metadata;
  EXPECT_EQ(describe_tokenizer(folder.path(), 2, metadata), std::vector<std::string>{"b (one of several at an end of texts)"});
  GgufWriter(folder / "m.gguf", metadata, {}).commit();
  EXPECT_EQ(GgufFile::open(folder / "m.gguf").value("tokenizer.ggml.merges").size(), 0u);
}

TEST(GgufVocabulary, WhatStandsAroundTextsOfBpeIsSaid) {
  const TemporaryFolder folder;
  test::write_text(folder / "config.json", "{}");
  constexpr std::string_view sequence = R"({"type": "Sequence", "processors": [{"type": "ByteLevel", "trim_offsets": true},
      {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
       "pair": [], "special_tokens": {"<s>": {"id": "<s>", "ids": [2], "tokens": ["<s>"]}}}]})";
  for (std::string_view processor : {sequence, std::string_view("null")}) {
    json::Value tokenizer = cut_by({byte_level(true)}, false);
    tokenizer["model"]["vocab"] = {{"a", 0}, {"b", 1}, {"<s>", 2}};
    tokenizer["post_processor"] = json::parse(processor, "processor");
    const GgufFile file = described(folder, tokenizer.dump(), 3);
    const bool begins = processor == sequence;
    EXPECT_EQ(file.value("tokenizer.ggml.add_bos_token").boolean(), begins);
    EXPECT_FALSE(file.value("tokenizer.ggml.add_eos_token").boolean());
    EXPECT_EQ(file.find_value("tokenizer.ggml.bos_token_id") != nullptr, begins);
  }
}

TEST(GgufVocabulary, BpeWithBytesHasScoresByTheRankOfMerges) {
  const TemporaryFolder folder;
  test::write_text(folder / "config.json", "{}");
  const GgufFile file = described(folder, R"({"pre_tokenizer": null,
      "model": {"type": "BPE", "unk_token": "<unk>", "byte_fallback": true,
                "vocab": {"<unk>": 0, "<0x00>": 1, "a": 2, "b": 3, "ab": 4, "aa": 5}, "merges": ["a b", "a a"]}})",
                                  6);
  EXPECT_EQ(file.value("tokenizer.ggml.model").string(), "llama");
  EXPECT_EQ(file.value("tokenizer.ggml.token_type").integers(), (Numbers{2, 6, 1, 1, 1, 1}));
  EXPECT_EQ(file.value("tokenizer.ggml.scores").numbers(), (std::vector<double>{0, 0, 0, 0, 0, -1}));
  EXPECT_EQ(file.value("tokenizer.ggml.unknown_token_id").integer(), 0);
}

TEST(GgufVocabulary, UnigramKeepsItsScores) {
  const TemporaryFolder folder;
  test::write_text(folder / "config.json", "{}");
  const GgufFile file = described(folder, R"({"model": {"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0], ["x", -2.5]]}})", 2);
  EXPECT_EQ(file.value("tokenizer.ggml.model").string(), "t5");
  EXPECT_EQ(file.value("tokenizer.ggml.scores").numbers(), (std::vector<double>{0, -2.5}));
}

/// XLM-RoBERTa's kind: sentencepiece's rules of text, and tokens around it, which tokenizer.model could not say.
TEST(GgufVocabulary, UnigramOfAnEncoderComesBackAsTokenizerJson) {
  const TemporaryFolder folder;
  test::write_text(folder / "config.json", "{}");
  json::Value original = json::read_file(test::fixture("tokenizers/unigram-t5/tokenizer.json"));
  original["post_processor"] = {
      {"type", "RobertaProcessing"}, {"cls", {"<pad>", 0}}, {"sep", {"</s>", 1}}, {"trim_offsets", true}, {"add_prefix_space", false}};
  const GgufFile file = described(folder, original.dump(), 601);
  const Tokenizer wanted = Tokenizer::parse(original.dump(), "original");
  const auto files = tokenizer_files(file);
  const Tokenizer seen = Tokenizer::parse(files.at("tokenizer.json"), "written");
  for (const char* text : {"Hello  world", " two spaces, isn't it? ", "\u00c4rger \ufb01x \u30a6\u30a7\u30d6 \u2460", "a </s> b", ""}) {
    EXPECT_EQ(seen.encode(text).ids, wanted.encode(text).ids) << text;
    EXPECT_EQ(seen.encode_pair("a b", text).ids, wanted.encode_pair("a b", text).ids) << text;
  }
  const TemporaryFolder again;  // what was written says the same once more
  test::write_text(again / "config.json", "{}");
  EXPECT_EQ(tokenizer_files(described(again, files.at("tokenizer.json"), 601)).at("tokenizer.json"), files.at("tokenizer.json"));
}

TEST(Base64, OfBytesIsThatOfTheStandard) {  // RFC 4648, section 10
  const std::pair<const char*, const char*> cases[] = {
      {"", ""}, {"f", "Zg=="}, {"fo", "Zm8="}, {"foo", "Zm9v"}, {"foob", "Zm9vYg=="}, {"fooba", "Zm9vYmE="}, {"foobar", "Zm9vYmFy"}};
  for (const auto& [bytes, text] : cases) {
    EXPECT_EQ(encode_base64(bytes), text);
    EXPECT_EQ(decode_base64(text, "text"), bytes);
  }
}

TEST(GgufVocabulary, SaysWhatGgufFilesDoNotKnow) {
  const TemporaryFolder folder;
  test::write_text(folder / "config.json", "{}");
  EXPECT_NE(error_of([&] { described(folder, R"({"model": {"type": "WordLevel", "vocab": {}}})", 1); }).find("'WordLevel' has no form"),
            std::string::npos);
  const std::string message = error_of([&] {
    described(folder,
              R"({"pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Split", "pattern": {"Regex": "x"},
      "behavior": "Isolated", "invert": false}, {"type": "ByteLevel", "add_prefix_space": false, "use_regex": false}]},
      "model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}})",
              1);
  });
  EXPECT_NE(message.find("pre_tokenizer"), std::string::npos) << message;
  EXPECT_NE(message.find("no name in GGUF files"), std::string::npos) << message;
}

TEST(GgufVocabulary, FlagsOfAddedTokensThatHaveNoKeyAreTold) {
  const TemporaryFolder folder;
  test::write_text(folder / "config.json", "{}");
  const auto losses = [&](const char* normalizer) {
    test::write_text(folder / "tokenizer.json", fmt::format(R"({{"pre_tokenizer": {{"type": "ByteLevel", "add_prefix_space": false}},
      "added_tokens": [{{"id": 2, "content": "<s>", "special": true, "lstrip": false, "normalized": false}},
        {{"id": 3, "content": "<mask>", "special": true, "lstrip": true, "single_word": true}},
        {{"id": 4, "content": "<u>", "special": false, "normalized": true}}],
      "normalizer": {}, "model": {{"type": "BPE", "vocab": {{"a": 0, "b": 1}}, "merges": []}}}})",
                                                            normalizer));
    GgufMetadata metadata;
    return describe_tokenizer(folder.path(), 5, metadata);
  };
  EXPECT_EQ(losses("null"), std::vector<std::string>{"<mask> (lstrip, single_word)"});
  EXPECT_EQ(losses(R"({"type": "NFC"})"), (std::vector<std::string>{"<mask> (lstrip, single_word)", "<u> (normalized)"}));
}

TEST(GgufVocabulary, NamesTheFieldThatIsNotAsItMustBe) {
  const TemporaryFolder folder;
  test::write_text(folder / "config.json", "{}");
  const std::string file = (folder / "tokenizer.json").string();
  const auto error = [&](std::string_view tokenizer) { return error_of([&] { described(folder, tokenizer, 2); }); };
  EXPECT_EQ(
      error(
          R"({"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false}, "post_processor": {"type": "BertProcessing", "cls": [], "sep": ["a", 0]},
                      "model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}})"),
      file + ": post_processor.cls: 0 parts (allowed: 2, a token and its id)");
  EXPECT_EQ(error(R"({"model": {"type": "BPE", "vocab": {"a": 0, "b": 2}, "merges": []}})"),
            file + ": token 'b' has the id 2 (allowed: 0..1, the rows of the embeddings)");
}

/// As that of pictures in Gemma 3's model of texts.
TEST(GgufVocabulary, AddedTokensWithoutARowAreLeftOutAndTold) {
  const TemporaryFolder folder;
  test::write_text(folder / "config.json", R"({"eos_token_id": [1], "pad_token_id": 2})");
  test::write_text(folder / "tokenizer_config.json", R"({"pad_token": "[PAD]"})");
  test::write_text(folder / "tokenizer.json", R"({"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false},
      "added_tokens": [{"id": 1, "content": "</s>", "special": true}, {"id": 2, "content": "[PAD]", "special": true}],
      "model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}})");
  for (const bool named : {true, false}) {  // by its text, by its id
    GgufMetadata metadata;
    EXPECT_EQ(describe_tokenizer(folder.path(), 2, metadata), std::vector<std::string>{"[PAD] (without a row of the embeddings)"});
    GgufWriter(folder / "m.gguf", metadata, {}).commit();
    const GgufFile file = GgufFile::open(folder / "m.gguf");
    EXPECT_EQ(file.value("tokenizer.ggml.tokens").strings(), (Texts{"a", "</s>"}));
    EXPECT_EQ(file.value("tokenizer.ggml.eos_token_id").integer(), 1);
    EXPECT_EQ(file.find_value("tokenizer.ggml.padding_token_id"), nullptr) << named;
    std::filesystem::remove(folder / "tokenizer_config.json");
  }
}

/// As pages read it.
TEST(GgufVocabulary, SentencepiecesBpeHasAFormInTokenizerJson) {
  const TemporaryFolder folder;
  test::write_text(folder / "config.json", "{}");
  std::filesystem::copy(test::fixture("tokenizers/sentencepiece-bpe/tokenizer.model"), folder / "tokenizer.model");
  const GgufFile file = described(folder, open_tokenizer(folder / "tokenizer.model").vocab_size());
  const Tokenizer wanted = read_gguf_tokenizer(file), seen = Tokenizer::parse(tokenizer_json(file), "written");
  for (const json::Value& item : json::read_file(test::fixture("tokenizers/sentencepiece-bpe/cases.json"))) {
    const auto text = item.at("text").get<std::string>();
    const std::vector<std::int32_t> ids = wanted.encode_ids(text);
    EXPECT_EQ(seen.encode_ids(text), ids) << text;
    EXPECT_EQ(seen.decode(ids, true), wanted.decode(ids, true)) << text;
  }
}

/// Each cut of a long token could be a merge: hashing both sides of all cuts takes a minute.
TEST(GgufVocabulary, ATokenOfManyBytesIsWrittenAtOnce) {
  const TemporaryFolder folder;
  std::string longest;
  for (std::uint32_t i = 0, c = 1; i < 400'000; ++i) longest += static_cast<char>('a' + (c = c * 1664525 + 1013904223) % 26);
  const std::string end = longest.substr(longest.size() - 2), begin = longest.substr(0, longest.size() - 2);
  GgufMetadata metadata;
  metadata.set("tokenizer.ggml.model", "llama");
  metadata.set_strings("tokenizer.ggml.tokens", std::vector<std::string>{"<unk>", "<s>", "</s>", begin, end, longest});
  metadata.set_numbers<float>("tokenizer.ggml.scores", std::vector<float>{0, 0, 0, -1, -2, -3});
  metadata.set_numbers<std::int32_t>("tokenizer.ggml.token_type", std::vector<std::int32_t>{2, 3, 3, 1, 1, 1});
  GgufWriter(folder / "m.gguf", metadata, {}).commit();
  const auto start = std::chrono::steady_clock::now();
  const std::string written = tokenizer_json(GgufFile::open(folder / "m.gguf"));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
  EXPECT_EQ(json::parse(written, "written").at("model").at("merges"), json::Value::array({json::Value::array({begin, end})}));
}

/// Of folders that have tokenizer.model alone.
TEST(GgufVocabulary, SentencepiecesGiveTheTokensOfTheirFile) {
  for (const char* name : {"sentencepiece-bpe", "sentencepiece-unigram"}) {
    const TemporaryFolder folder;
    test::write_text(folder / "config.json", "{}");
    test::write_text(folder / "tokenizer_config.json", R"({"eos_token": "</s>", "chat_template": "{{ x }}"})");
    std::filesystem::copy(test::fixture("tokenizers") / name / "tokenizer.model", folder / "tokenizer.model");
    const Tokenizer wanted = open_tokenizer(folder / "tokenizer.model");
    const GgufFile file = described(folder, static_cast<std::int64_t>(wanted.vocab_size()) + 1);
    EXPECT_EQ(file.value("tokenizer.ggml.tokens").strings().back(), fmt::format("[PAD{}]", wanted.vocab_size()));
    EXPECT_EQ(file.value("tokenizer.ggml.eos_token_id").integer(), 2);
    EXPECT_EQ(file.value("tokenizer.chat_template").string(), "{{ x }}");
    test::write_text(folder / "back.model", tokenizer_files(file).at("tokenizer.model"));
    const Tokenizer seen = read_gguf_tokenizer(file), back = open_tokenizer(folder / "back.model");
    for (const json::Value& item : json::read_file(test::fixture("tokenizers") / name / "cases.json")) {
      const auto text = item.at("text").get<std::string>();
      const bool tied = text.starts_with("aaaa");  // sums of scores are equal but for rounding: to f32 there, to f64 of GGUF files
      EXPECT_TRUE(tied || seen.encode_ids(text) == wanted.encode_ids(text)) << name << ": " << text;
      EXPECT_EQ(back.encode_ids(text), wanted.encode_ids(text)) << name << ": " << text;
    }
  }
}

TEST(GgufVocabulary, TekkenIsRefused) {
  const TemporaryFolder folder;
  test::write_text(folder / "tekken.json", "{}");
  EXPECT_EQ(error_of([&] { described(folder, 1); }),
            (folder / "tekken.json").string() + ": has no form in GGUF files here (tokenizer.json and tokenizer.model have)");
}

TEST(GgufVocabulary, AFolderWithoutTokenizerHasNoKeys) {
  const TemporaryFolder folder;
  GgufMetadata metadata;
  describe_tokenizer(folder.path(), 10, metadata);
  EXPECT_TRUE(metadata.entries().empty());
}

}  // namespace
}  // namespace rlx
