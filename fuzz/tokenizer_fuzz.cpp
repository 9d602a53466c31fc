#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "models/tokenizer/tokenizer.h"
#include "rlx/error.h"

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

/// Ends the process if tokens do not lie inside their text.
void check_offsets(const rlx::Encoding& encoding, std::size_t longest_text) {
  for (const auto& [begin, end] : encoding.offsets) {
    if (begin > end || end > longest_text) std::abort();
  }
}

void encode(const rlx::Tokenizer& tokenizer, std::string_view text) {
  try {
    const rlx::Encoding single = tokenizer.encode(text);
    check_offsets(single, text.size());
    check_offsets(tokenizer.encode_pair(text, text.substr(text.size() / 2)), text.size());
    tokenizer.decode(single.ids, false);
  } catch (const rlx::Error&) {  // a truncation that the text cannot bear
  }
}

}  // namespace

/// The input as a tokenizer file, and as a text for a tokenizer that is known to be good.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const rlx::Tokenizer known = rlx::Tokenizer::parse(small_tokenizer, "small");
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  encode(known, input);
  try {
    const rlx::Tokenizer parsed = rlx::Tokenizer::parse(input, "fuzz");
    encode(parsed, "He\xCC\x81llo, [CLS] one world 12\xF0\x9F");
  } catch (const rlx::Error&) {  // what a malformed file must give
  }
  return 0;
}
