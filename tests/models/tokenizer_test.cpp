#include "text/tokenizer/tokenizer.h"

#include <cstdlib>
#include <thread>

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "fixture.h"
#include "formats/json/json.h"
#include "formats/temporary_folder.h"
#include "models/minilm.h"
#include "rlx/error.h"

namespace rlx {
namespace tokenizer_test {

using json::Value;
using test::error_of;

Value read_fixture(const char* name) { return json::read_file(test::fixture(name)); }

Value small_file() { return read_fixture("tokenizers/wordpiece-uncased/tokenizer.json"); }

Tokenizer make(const Value& file) { return Tokenizer::parse(file.dump(), "tokenizer.json"); }

Tokenizer small() { return Tokenizer::open(test::fixture("tokenizers/wordpiece-uncased/tokenizer.json")); }

std::string text_of(const Value& value) { return value.get<std::string>(); }

std::vector<std::int32_t> ids_of(const Value& value) { return value.get<std::vector<std::int32_t>>(); }

/// The message for the small tokenizer with one member replaced.
std::string error_with(const char* pointer, const Value& value) {
  Value file = small_file();
  file[Value::json_pointer(pointer)] = value;
  return error_of([&] { make(file); });
}

// Recorded from `tokenizers` 0.23: 51 texts of all kinds of scripts, spaces and control characters.
TEST(WordPieceTokenizer, GivesTheRecordedTokensOfEveryText) {
  const Tokenizer tokenizer = small();
  const Value cases = read_fixture("tokenizers/wordpiece-uncased/cases.json");
  ASSERT_EQ(cases.size(), 51u);
  for (const Value& item : cases) {
    SCOPED_TRACE(item.at("text").dump());
    const std::string text = text_of(item.at("text"));
    const Encoding plain = tokenizer.encode(text, false);
    const Encoding special = tokenizer.encode(text);
    EXPECT_EQ(plain.ids, ids_of(item.at("ids")));
    EXPECT_EQ(plain.tokens, item.at("tokens").get<std::vector<std::string>>());
    EXPECT_EQ(special.ids, ids_of(item.at("ids_special")));
    EXPECT_EQ(tokenizer.decode(plain.ids, false), text_of(item.at("decoded")));
    EXPECT_EQ(tokenizer.decode(plain.ids, true), text_of(item.at("decoded_skip")));
  }
}

void expect_recorded(const Tokenizer& tokenizer, const Value& item) {
  const std::string first = text_of(item.at("first"));
  const bool special = item.at("special").get<bool>();
  const Value& second = item.at("second");
  const Encoding seen = second.is_null() ? tokenizer.encode(first, special) : tokenizer.encode_pair(first, text_of(second), special);
  EXPECT_EQ(seen.ids, ids_of(item.at("ids")));
  EXPECT_EQ(seen.type_ids, ids_of(item.at("type_ids")));
  EXPECT_EQ(seen.attention_mask, item.at("attention_mask").get<std::vector<std::uint8_t>>());
  EXPECT_EQ(seen.special_mask, item.at("special_tokens_mask").get<std::vector<std::uint8_t>>());
  EXPECT_EQ(seen.tokens, item.at("tokens").get<std::vector<std::string>>());
  std::vector<std::pair<std::size_t, std::size_t>> offsets;
  for (const Value& range : item.at("offsets")) offsets.emplace_back(range[0].get<std::size_t>(), range[1].get<std::size_t>());
  EXPECT_EQ(seen.offsets, offsets);
  EXPECT_EQ(tokenizer.decode(seen.ids, false), text_of(item.at("decoded")));
  EXPECT_EQ(tokenizer.decode(seen.ids, true), text_of(item.at("decoded_skip")));
}

// Every component with random settings on random texts, recorded from `tokenizers` 0.23 (record_variants.py beside the fixture).
TEST(WordPieceTokenizer, GivesTheRecordedTokensWithEveryComponent) {
  const Value variants = read_fixture("tokenizers/wordpiece-uncased/variants.json");
  std::size_t compared = 0;
  for (const Value& variant : variants) {
    Value file = small_file();
    for (const auto& [name, value] : variant.at("changes").items()) {
      if (name != "added_tokens") file[name] = value;
    }
    for (const Value& token : variant.at("changes").at("added_tokens")) file["added_tokens"].push_back(token);
    file["model"]["max_input_chars_per_word"] = variant.at("max_input_chars_per_word");
    const Tokenizer tokenizer = make(file);
    for (const Value& item : variant.at("cases")) {
      SCOPED_TRACE(variant.at("changes").dump() + "\n" + item.at("first").dump() + " " + item.at("second").dump());
      expect_recorded(tokenizer, item);
      ++compared;
    }
  }
  EXPECT_GT(compared, 400u);
}

TEST(WordPieceTokenizer, GivesTheRecordedIdsOfTheMiniLmSentences) {
  const char* folder = std::getenv("RLX_MINILM");
  if (!folder) GTEST_SKIP() << test::without_minilm;
  Tokenizer tokenizer = Tokenizer::open(std::filesystem::path(folder) / "tokenizer.json");
  const Value expected = read_fixture("minilm/expected.json");
  tokenizer.set_truncation(Truncation{.max_length = expected.at("max_seq_length").get<std::size_t>()});
  tokenizer.set_padding(std::nullopt);
  ASSERT_FALSE(expected.at("rows").empty());
  for (const Value& row : expected.at("rows")) EXPECT_EQ(tokenizer.encode(text_of(row.at("text"))).ids, ids_of(row.at("ids")));
}

TEST(WordPieceTokenizer, OffsetsPointIntoTheTextThatWasGiven) {
  const std::string text = "  Caf\u00e9 \u4f60\u597d <b> E\u0301t\u00e9";
  const Encoding encoding = small().encode(text, false);
  std::string seen;
  for (const auto& [begin, end] : encoding.offsets) seen += text.substr(begin, end - begin) + "|";
  // The accent after the E is a code point of its own, which the normalizer drops: no token stands for it.
  EXPECT_EQ(seen, "Ca|f|\u00e9|\u4f60|\u597d|<|b|>|E|t\u00e9|") << fmt::format("{}", fmt::join(encoding.tokens, " "));
}

TEST(WordPieceTokenizer, TextThatIsNotUtf8CountsAsReplacementCharacters) {
  Value file = small_file();
  file["normalizer"] = nullptr;
  file["pre_tokenizer"] = Value{{"type", "Punctuation"}, {"behavior", "Isolated"}};
  const std::string text = "a,\xF0\x9F,\xC0,b";
  EXPECT_EQ(make(file).encode(text, false).tokens, (std::vector<std::string>{"a", ",", "[UNK]", ",", "[UNK]", ",", "b"}));
  EXPECT_EQ(make(file).encode(text, false).offsets[2], (std::pair<std::size_t, std::size_t>{2, 4}));
  EXPECT_EQ(small()
                .encode("a\xFF"
                        "b")
                .ids,
            small()
                .encode("a\xEF\xBF\xBD"
                        "b")
                .ids);  // the same as U+FFFD itself
}

TEST(WordPieceTokenizer, TextsAreCutAndPaddedToALength) {
  Tokenizer tokenizer = small();
  tokenizer.set_padding(Padding{.fixed_length = 5, .multiple_of = 3, .pad_type_id = 7});
  tokenizer.set_truncation(Truncation{.max_length = 6});
  EXPECT_EQ(tokenizer.encode("hello, hello, hello").ids, (std::vector<std::int32_t>{2, 636, 398, 178, 13, 3}));
  const Encoding padded = tokenizer.encode("a");
  EXPECT_EQ(padded.ids, (std::vector<std::int32_t>{2, 36, 3, 0, 0, 0}));
  EXPECT_EQ(padded.attention_mask, (std::vector<std::uint8_t>{1, 1, 1, 0, 0, 0}));
  EXPECT_EQ(padded.special_mask, (std::vector<std::uint8_t>{1, 0, 1, 1, 1, 1}));
  EXPECT_EQ(padded.type_ids, (std::vector<std::int32_t>{0, 0, 0, 7, 7, 7}));
  EXPECT_EQ(padded.tokens.back(), "[PAD]");
}

TEST(WordPieceTokenizer, TruncationThatCannotHoldIsRefused) {
  Tokenizer tokenizer = small();
  EXPECT_EQ(error_of([&] { tokenizer.set_truncation(Truncation{.max_length = 1}); }),
            "tokenizer: truncation to 1 tokens leaves no room for 2 special tokens");
  tokenizer.set_truncation(Truncation{.max_length = 2});
  EXPECT_EQ(tokenizer.encode("hello").ids, (std::vector<std::int32_t>{2, 3}));
  EXPECT_EQ(error_of([&] { tokenizer.encode_pair("a", "b"); }), "tokenizer: truncation to 2 tokens leaves no room for 3 special tokens");
  tokenizer.set_truncation(Truncation{.max_length = 4, .strategy = Truncation::Strategy::only_first});
  EXPECT_EQ(error_of([&] { tokenizer.encode_pair("a", "b c d"); }),
            "tokenizer: truncation 'OnlyFirst' must take 3 tokens from a text of 1");
  tokenizer.set_truncation(Truncation{.max_length = 4, .strategy = Truncation::Strategy::only_second});
  EXPECT_EQ(error_of([&] { tokenizer.encode("a b c"); }), "tokenizer: truncation 'OnlySecond' of a single text of 3 tokens (allowed: 2)");
  EXPECT_EQ(error_of([&] { tokenizer.set_padding(Padding{.fixed_length = max_padded_length + 1}); }),
            "padding: a length of 16777217 is over the limit, 16777216");
}

TEST(WordPieceTokenizer, NamesItsTokens) {
  const Tokenizer tokenizer = small();
  EXPECT_EQ(tokenizer.vocab_size(), 640u);
  EXPECT_EQ(tokenizer.token_to_id("[CLS]"), 2);
  EXPECT_EQ(tokenizer.token_to_id("no such token"), std::nullopt);
  EXPECT_EQ(tokenizer.id_to_token(398), "##ll");
  EXPECT_EQ(error_of([&] { tokenizer.id_to_token(640); }), "tokenizer: no token has the id 640 (there are 640 tokens)");
  EXPECT_EQ(tokenizer.decode(std::vector<std::int32_t>{636, -1, 100000, 398}), "hell");
}

TEST(WordPieceTokenizer, SpecialTokensAreLeftOutEvenIfTheNormalizerChangesThem) {
  Value file = small_file();
  file["added_tokens"].push_back({{"id", 640},
                                  {"content", "<END>"},
                                  {"single_word", false},
                                  {"lstrip", false},
                                  {"rstrip", false},
                                  {"normalized", true},
                                  {"special", true}});
  const Tokenizer tokenizer = make(file);
  EXPECT_EQ(tokenizer.vocab_size(), 641u);
  const Encoding encoding = tokenizer.encode("a<End>b", false);
  EXPECT_EQ(encoding.ids, (std::vector<std::int32_t>{36, 640, 37}));
  EXPECT_EQ(tokenizer.decode(encoding.ids, true), "a b");
  EXPECT_EQ(tokenizer.decode(encoding.ids, false), "a <end> b");
}

// As `tokenizers` 0.23 cuts: punctuation is symbols too.
TEST(WordPieceTokenizer, SetsHaveClassesOfPosix) {
  Value file = small_file();
  const std::string letters = "[[:^punct:]&&[^[:space:][:digit:]]]";
  file["normalizer"] = {{"type", "Replace"}, {"pattern", {{"Regex", letters}}}, {"content", "a"}};
  file["pre_tokenizer"] = {{"type", "Split"}, {"pattern", {{"Regex", "[[:punct:]]"}}}, {"behavior", "Removed"}};
  EXPECT_EQ(make(file).encode_ids("b+b$b", false), (std::vector<std::int32_t>{36, 36, 36}));
}

// In Oniguruma the numbers of Latin-1 are words by themselves, and none within a set.
TEST(WordPieceTokenizer, SetsHaveTheWordsOfPosix) {
  const auto left = [](const char* removed) {
    Value file = small_file();
    file["pre_tokenizer"] = {{"type", "Split"}, {"pattern", {{"Regex", removed}}}, {"behavior", "Removed"}};
    return make(file).encode_ids("a\u00bd", false).size();
  };
  EXPECT_EQ(left(R"(\w)"), 0u);
  EXPECT_EQ(left(R"([\w])"), 1u);
  EXPECT_EQ(left(R"([^\w])"), 1u);
  EXPECT_EQ(left(R"(\W)"), 1u);
}

// As `tokenizers` 0.23 joins them.
TEST(UnigramTokenizer, TheUnknownTokensNameIsOneWithWhatIsUnknownBesideIt) {
  Value file = {{"model", {{"type", "Unigram"}, {"unk_id", 0}, {"vocab", json::parse(R"([["<unk>", -1], ["a", -1]])", "vocab")}}}};
  const auto ids = [&](const std::string& text) { return make(file).encode_ids(text, false); };
  using Ids = std::vector<std::int32_t>;
  EXPECT_EQ(ids("a<unk>a"), (Ids{1, 0, 1}));
  EXPECT_EQ(ids("ab<unk><unk>ca"), (Ids{1, 0, 1}));
  file["model"]["byte_fallback"] = true;
  for (int byte = 0; byte < 256; ++byte) file["model"]["vocab"].push_back(Value::array({fmt::format("<0x{:02X}>", byte), -1}));
  EXPECT_EQ(ids("a<unk>a"), (Ids{1, 0, 1}));
  EXPECT_EQ(ids("<unk>b"), (Ids{2 + '<', 2 + 'u', 2 + 'n', 2 + 'k', 2 + '>', 2 + 'b'}));
}

/// Forty rules that each write ten letters for one would make 10^40.
TEST(WordPieceTokenizer, RulesThatMultiplyATextAreBounded) {
  const Value tenfold = {{"type", "Replace"}, {"pattern", {{"String", "a"}}}, {"content", "aaaaaaaaaa"}};
  const std::string long_text(1 << 20, 'a');
  const Value many = {{"type", "Sequence"}, {"normalizers", std::vector<Value>(40, tenfold)}};
  const Value nested = {{"type", "Sequence"}, {"normalizers", {many, many}}};
  const Value once = {{"type", "Replace"}, {"pattern", {{"String", "a"}}}, {"content", long_text}};
  for (const Value& normalizer : {many, nested}) {
    Value file = small_file();
    file["normalizer"] = normalizer;
    const Tokenizer tokenizer = make(file);
    EXPECT_EQ(error_of([&] { tokenizer.encode_ids("a"); }), "tokenizer: the rules of its file make more than 65600 characters of a text");
    EXPECT_FALSE(tokenizer.encode_ids("bbb").empty());
  }
  Value file = small_file();
  file["normalizer"] = once;
  EXPECT_NE(error_of([&] { make(file).encode_ids(long_text); }).find("more than"), std::string::npos);
  file["normalizer"] = {{"type", "Sequence"},
                        {"normalizers", std::vector<Value>(1000, {{"type", "Prepend"}, {"prepend", long_text.substr(0, 1000)}})}};
  EXPECT_NE(error_of([&] { make(file).encode_ids("b"); }).find("more than"), std::string::npos);
  file["decoder"] = {{"type", "Sequence"}, {"decoders", std::vector<Value>(40, tenfold)}};
  file.erase("normalizer");
  EXPECT_NE(error_of([&] { make(file).decode(make(file).encode_ids("a")); }).find("more than"), std::string::npos);
}

TEST(WordPieceTokenizer, ServesThreadsAtTheSameTime) {
  const Tokenizer tokenizer = small();
  const std::vector<std::int32_t> expected = tokenizer.encode("Hello, world!").ids;
  std::vector<int> equal(4, 0);
  std::vector<std::thread> threads;
  for (int& count : equal) {
    threads.emplace_back([&tokenizer, &expected, &count] {
      for (int i = 0; i < 200; ++i) count += tokenizer.encode("Hello, world!").ids == expected ? 1 : 0;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(equal, std::vector<int>(4, 200));
}

struct Malformed {
  const char* pointer;
  const char* value;
  const char* message;
};

constexpr Malformed malformed[] = {
    {"/version", "\"2.0\"", "tokenizer.json: version: '2.0' is not known (allowed: 1.0)"},
    {"/model", "null", "tokenizer.json: model: expected an object, found a value of type null"},
    {"/model/type", "\"BPE\"", "tokenizer.json: model: the field 'merges' is missing"},
    {"/model/type", "\"Markov\"", "tokenizer.json: model.type: 'Markov' is not supported (supported: BPE, Unigram, WordPiece, WordLevel)"},
    {"/model/vocab", "7", "tokenizer.json: model.vocab: expected an object of tokens and ids, found a value of type number"},
    {"/model/vocab/new", "-1", "tokenizer.json: model.vocab: token 'new': expected an id in 0..2147483647, found -1"},
    {"/model/vocab/new", "2147483648", "tokenizer.json: model.vocab: token 'new': expected an id in 0..2147483647, found 2147483648"},
    {"/model/vocab/new", "1.5", "tokenizer.json: model.vocab: token 'new': expected an id in 0..2147483647, found 1.5"},
    {"/model/vocab/new", "2", "tokenizer.json: model.vocab: tokens '[CLS]' and 'new' both have the id 2"},
    {"/model/unk_token", "\"<unk>\"", "tokenizer.json: model.unk_token: '<unk>' is not in the vocabulary"},
    {"/model/max_input_chars_per_word", "-5",
     "tokenizer.json: model.max_input_chars_per_word: expected an integer in 0..18446744073709551615, found -5"},
    {"/added_tokens/1", "{}", "tokenizer.json: added_tokens[1]: the field 'content' is missing"},
    {"/added_tokens/1/special", "1", "tokenizer.json: added_tokens[1].special: expected true or false, found a value of type number"},
    {"/added_tokens/1/id", "9", "tokenizer.json: added_tokens[1].id: token '[UNK]' has the id 1, found 9"},
    {"/added_tokens/1/content", "\"new\"", "tokenizer.json: added_tokens[1].id: token 'new' has the id 640, found 1"},
    {"/normalizer/type", "\"Uppercase\"",
     "tokenizer.json: normalizer.type: 'Uppercase' is not supported (supported: BertNormalizer, Lowercase, NFC, NFD, NFKC, NFKD, "
     "StripAccents, Strip, Replace, Prepend, Precompiled, Nmt, ByteLevel, Sequence)"},
    {"/normalizer", R"({"type":"Precompiled","precompiled_charsmap":"AAAA"})",
     "tokenizer.json: normalizer: 3 bytes of normalization rules (allowed: 4 or more)"},
    {"/normalizer", R"({"type":"Precompiled","precompiled_charsmap":"CAAAAAAA"})",
     "tokenizer.json: normalizer: the rules' array has 8 bytes (allowed: multiples of 4 up to 2)"},
    {"/normalizer", R"({"type":"Precompiled","precompiled_charsmap":"AA*A"})", "tokenizer.json: normalizer: a byte of 42 is not base64"},
    {"/normalizer/lowercase", "null", "tokenizer.json: normalizer.lowercase: expected true or false, found a value of type null"},
    {"/normalizer", R"({"type":"Sequence","normalizers":[{"type":"NFC"},{}]})",
     "tokenizer.json: normalizer.normalizers[1]: the field 'type' is missing"},
    {"/normalizer", R"({"type":"Replace","pattern":{"Regex":"(a+"},"content":""})",
     "tokenizer.json: normalizer.pattern.Regex: the pattern has a group that is not closed, at code point 3"},
    {"/normalizer", R"({"type":"Replace","pattern":{"Regex":"[[:lower:]]"},"content":""})",
     "tokenizer.json: normalizer.pattern.Regex: the pattern asks for the class [:lower:], which is not supported, at code point 1"},
    {"/normalizer", R"({"type":"Replace","pattern":{"String":""},"content":""})",
     "tokenizer.json: normalizer.pattern.String: an empty pattern cannot be replaced"},
    {"/pre_tokenizer/type", "\"Metaspace\"", "tokenizer.json: pre_tokenizer: the field 'replacement' is missing"},
    {"/pre_tokenizer/type", "\"UnicodeScripts\"",
     "tokenizer.json: pre_tokenizer.type: 'UnicodeScripts' is not supported (supported: ByteLevel, Split, Metaspace, BertPreTokenizer, "
     "Whitespace, WhitespaceSplit, Punctuation, Digits, CharDelimiterSplit, FixedLength, Sequence)"},
    {"/pre_tokenizer", R"({"type":"CharDelimiterSplit","delimiter":"ab"})",
     "tokenizer.json: pre_tokenizer.delimiter: expected one character, found 2"},
    {"/pre_tokenizer", R"({"type":"Punctuation","behavior":"Merged"})",
     "tokenizer.json: pre_tokenizer.behavior: 'Merged' is not known (allowed: Removed, Isolated, MergedWithPrevious, MergedWithNext, "
     "Contiguous)"},
    {"/post_processor/type", "\"ByteLevel\"", "tokenizer.json: post_processor: the field 'trim_offsets' is missing"},
    {"/post_processor/type", "\"Pairs\"",
     "tokenizer.json: post_processor.type: 'Pairs' is not supported (supported: TemplateProcessing, BertProcessing, RobertaProcessing, "
     "ByteLevel, Sequence)"},
    {"/post_processor/single/0/SpecialToken/id", "\"[BOS]\"",
     "tokenizer.json: post_processor.single[0].SpecialToken.id: '[BOS]' is not among special_tokens"},
    {"/post_processor/single/1/Sequence/id", "\"B\"",
     "tokenizer.json: post_processor.single: the template for one text uses the second one, 'B'"},
    {"/post_processor/special_tokens/[CLS]/ids", "[2,2]", "tokenizer.json: post_processor.special_tokens['[CLS]']: 2 ids for 1 tokens"},
    {"/post_processor", R"({"type":"BertProcessing","sep":["[SEP]"],"cls":["[CLS]",2]})",
     "tokenizer.json: post_processor.sep: expected a token and its id, found 1 values"},
    {"/decoder/type", "\"Bytes\"",
     "tokenizer.json: decoder.type: 'Bytes' is not supported (supported: ByteLevel, Metaspace, WordPiece, BPEDecoder, CTC, ByteFallback, "
     "Fuse, Replace, Strip, Sequence)"},
    {"/truncation", R"({"max_length":1,"strategy":"LongestFirst","stride":0})",
     "tokenizer.json: truncation: max_length 1 leaves no room for 2 special tokens"},
    {"/truncation", R"({"max_length":9,"strategy":"LongestFirst","stride":9})",
     "tokenizer.json: truncation.stride: 9 is not under max_length, 9"},
    {"/truncation", R"({"max_length":9,"strategy":"Shortest","stride":0})",
     "tokenizer.json: truncation.strategy: 'Shortest' is not known (allowed: LongestFirst, OnlyFirst, OnlySecond)"},
    {"/padding", R"({"strategy":{"Fixed":1152921504606846976},"direction":"Right","pad_id":0,"pad_type_id":0,"pad_token":""})",
     "tokenizer.json: padding.strategy.Fixed: expected an integer in 0..16777216, found 1152921504606846976"},
    {"/padding", R"({"strategy":"BatchLongest","direction":"Up","pad_id":0,"pad_type_id":0,"pad_token":""})",
     "tokenizer.json: padding.direction: 'Up' is not known (allowed: Left, Right)"},
};

TEST(WordPieceTokenizer, MalformedFieldsAreNamed) {
  for (const Malformed& item : malformed) EXPECT_EQ(error_with(item.pointer, Value::parse(item.value)), item.message);
}

TEST(WordPieceTokenizer, AddedTokensThatCannotBeToldApartAreRefused) {
  Value file = small_file();
  const auto add = [&file](int id, const char* content) {
    file["added_tokens"].push_back({{"id", id},
                                    {"content", content},
                                    {"single_word", false},
                                    {"lstrip", false},
                                    {"rstrip", false},
                                    {"normalized", true},
                                    {"special", false}});
  };
  add(640, "World");
  add(641, "WORLD");
  EXPECT_EQ(
      error_of([&] { make(file); }),
      "tokenizer.json: added_tokens[6].content: the token 'WORLD' is looked for as 'world', which is empty or stands for another token");
}

TEST(WordPieceTokenizer, AFileThatIsNoTokenizerIsNamed) {
  EXPECT_EQ(error_of([] { Tokenizer::parse("[]", "list.json"); }), "list.json: expected an object, found a value of type array");
  EXPECT_EQ(error_of([] { Tokenizer::parse("{}", "empty.json"); }), "empty.json: the field 'model' is missing");
  const std::string missing = error_of([] { Tokenizer::open("no/such/tokenizer.json"); });
  EXPECT_NE(missing.find("no/such/tokenizer.json"), std::string::npos) << missing;
  const std::string broken = error_of([] { Tokenizer::parse("{\"model\": ", "broken.json"); });
  EXPECT_TRUE(broken.starts_with("broken.json: line 1, column ")) << broken;
}

}  // namespace tokenizer_test
}  // namespace rlx
