#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "rlx/error.h"
#include "text/tokenizer/text_stream.h"
#include "text/tokenizer/tokenizer.h"

namespace {

/// Has every step that looks at text: white space around tokens, whole words, normalized ones, marks that are dropped.
constexpr std::string_view small_tokenizer = R"({
  "version": "1.0",
  "truncation": {"max_length": 8, "strategy": "LongestFirst", "stride": 0, "direction": "Left"},
  "padding": {"strategy": "BatchLongest", "direction": "Left", "pad_to_multiple_of": 4, "pad_id": 0, "pad_type_id": 0, "pad_token": "[PAD]"},
  "added_tokens": [
    {"id": 1, "content": "[CLS]", "single_word": false, "lstrip": true, "rstrip": true, "normalized": false, "special": true},
    {"id": 8, "content": "one", "single_word": true, "lstrip": false, "rstrip": false, "normalized": true, "special": false}],
  "normalizer": {"type": "Sequence", "normalizers": [
    {"type": "NFKC"},
    {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": null, "lowercase": true},
    {"type": "Replace", "pattern": {"String": "ab"}, "content": "b\u00e9"},
    {"type": "Strip", "strip_left": true, "strip_right": true}, {"type": "Prepend", "prepend": "a"}]},
  "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
    {"type": "BertPreTokenizer"}, {"type": "Digits", "individual_digits": false}]},
  "post_processor": {"type": "RobertaProcessing", "sep": ["[SEP]", 2], "cls": ["[CLS]", 1], "trim_offsets": true, "add_prefix_space": false},
  "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": true},
  "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 20,
    "vocab": {"[PAD]": 0, "[CLS]": 1, "[SEP]": 2, "[UNK]": 3, "a": 4, "##b": 5, "b": 6, "##\u00e9": 7}}})";

/// Bytes, a pattern that looks ahead, spaces that the tokenizer writes itself, and merges that compete.
constexpr std::string_view byte_tokenizer = R"json({
  "added_tokens": [{"id": 7, "content": "<s>", "single_word": false, "lstrip": true, "rstrip": false, "normalized": false, "special": true}],
  "normalizer": {"type": "Replace", "pattern": {"Regex": "\\s{2,}"}, "content": " "},
  "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
    {"type": "Split", "pattern": {"Regex": "\\p{N}{1,3}(?=(?:\\d{3})*\\b)|(?i:'s)"}, "behavior": "MergedWithPrevious", "invert": false},
    {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true}]},
  "post_processor": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true},
  "decoder": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true},
  "model": {"type": "BPE", "unk_token": "?", "fuse_unk": true,
    "vocab": {"?": 0, "a": 1, "b": 2, "ab": 3, "ba": 4, "\u0120": 5, "\u0120a": 6}, "merges": ["a b", ["b", "a"], "\u0120 a"]}})json";

/// Code points with byte fallback, cut at spaces by the model; unigram by the same text.
constexpr std::string_view piece_tokenizer = R"json({
  "normalizer": {"type": "Sequence", "normalizers": [{"type": "Nmt"}, {"type": "Prepend", "prepend": "\u2581"},
    {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}]},
  "decoder": {"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "},
    {"type": "ByteFallback"}, {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
  "model": {"type": "BPE", "unk_token": "<unk>", "fuse_unk": true, "byte_fallback": true,
    "vocab": {"<unk>": 0, "\u2581": 1, "a": 2, "\u2581a": 3, "b": 4, "ab": 5, "<0xC3>": 6, "<0xA9>": 7}, "merges": ["\u2581 a", "a b"]}})json";
constexpr std::string_view unigram_tokenizer = R"json({
  "pre_tokenizer": {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "first", "split": true},
  "decoder": {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "first", "split": true},
  "model": {"type": "Unigram", "unk_id": 0, "byte_fallback": true,
    "vocab": [["<unk>", 0], ["\u2581", -1.5], ["a", -1], ["\u2581a", -2], ["b", -2.5], ["ab", -3], ["<0x21>", -9]]}})json";

/// Ends the process if tokens do not lie inside their text.
void check_offsets(const rlx::Encoding& encoding, std::size_t longest_text) {
  for (const auto& [begin, end] : encoding.offsets) {
    if (begin > end || end > longest_text) std::abort();
  }
}

/// Of tokenizers that are known to be good, texts decoded id by id must be those decoded at once.
void encode(const rlx::Tokenizer& tokenizer, std::string_view text, bool is_known) {
  try {
    const rlx::Encoding single = tokenizer.encode(text);
    check_offsets(single, text.size());
    check_offsets(tokenizer.encode_pair(text, text.substr(text.size() / 2)), text.size());
    const std::string decoded = tokenizer.decode(single.ids, false);
    rlx::TextStream stream(tokenizer, false);
    std::string streamed;
    for (const std::int32_t id : single.ids) streamed += stream.push(id);
    if (is_known && streamed + stream.finish() != decoded) std::abort();
    tokenizer.encode_ids(text);
  } catch (const rlx::Error&) {  // a truncation that the text cannot bear
  }
}

}  // namespace

/// The input as a tokenizer file, and as a text for a tokenizer that is known to be good.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::array<rlx::Tokenizer, 4> known = {
      rlx::Tokenizer::parse(small_tokenizer, "words"), rlx::Tokenizer::parse(byte_tokenizer, "bytes"),
      rlx::Tokenizer::parse(piece_tokenizer, "pieces"), rlx::Tokenizer::parse(unigram_tokenizer, "unigram")};
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  for (const rlx::Tokenizer& tokenizer : known) encode(tokenizer, input, true);
  try {
    const rlx::Tokenizer parsed = rlx::Tokenizer::parse(input, "fuzz");
    encode(parsed, "He\xCC\x81llo, [CLS] one world 12\xF0\x9F", false);
  } catch (const rlx::Error&) {  // what a malformed file must give
  }
  return 0;
}
