#include "models/tokenizer/split_text.h"

#include "models/tokenizer/unicode.h"

namespace rlx {
namespace {

void append_token(Encoding& encoding, std::int32_t id, std::string_view token, std::size_t begin, std::size_t end) {
  encoding.ids.push_back(id);
  encoding.type_ids.push_back(0);
  encoding.attention_mask.push_back(1);
  encoding.special_mask.push_back(0);
  encoding.offsets.emplace_back(begin, end);
  encoding.tokens.emplace_back(token);
}

/// A word in UTF-8 and, for each of its bytes, the index of its code point.
struct WordBytes {
  std::string bytes;
  std::vector<std::uint32_t> chars;

  explicit WordBytes(std::span<const AlignedChar> word) {
    bytes.reserve(word.size());
    chars.reserve(word.size());
    for (std::size_t i = 0; i < word.size(); ++i) {
      unicode::append_utf8(bytes, word[i].value);
      chars.resize(bytes.size(), static_cast<std::uint32_t>(i));
    }
  }
};

}  // namespace

SplitText::SplitText(std::string_view text, const AddedTokens& added_tokens, const Normalizer* normalizer,
                     const PreTokenizer* pre_tokenizer) {
  const AlignedText& whole = texts_.emplace_back(align(text));
  for (const Segment& segment : added_tokens.split(whole, false)) {
    if (segment.token) {
      words_.push_back({&whole, segment.range, segment.token});
      continue;
    }
    const auto part = std::span(whole).subspan(segment.range.begin, segment.range.end - segment.range.begin);
    AlignedText normalized(part.begin(), part.end());
    if (normalizer) normalizer->apply(normalized);
    add_part(std::move(normalized), added_tokens, pre_tokenizer);
  }
}

void SplitText::add_part(AlignedText text, const AddedTokens& added_tokens, const PreTokenizer* pre_tokenizer) {
  const AlignedText& part = texts_.emplace_back(std::move(text));
  std::vector<TextRange> ranges;
  for (const Segment& segment : added_tokens.split(part, true)) {
    ranges.clear();
    if (segment.token || !pre_tokenizer) ranges.push_back(segment.range);
    else pre_tokenizer->split(part, segment.range, ranges);
    for (const TextRange& range : ranges) words_.push_back({&part, range, segment.token});
  }
}

void SplitText::encode_word(std::size_t index, const WordModel& model, Encoding& encoding) const {
  const Word& word = words_[index];
  const auto chars = std::span(*word.text).subspan(word.range.begin, word.range.end - word.range.begin);
  if (word.token) {
    append_token(encoding, word.token->id, to_utf8(chars), chars.front().begin, chars.back().end);
    return;
  }
  const WordBytes utf8(chars);
  std::vector<WordToken> tokens;
  model.tokenize(utf8.bytes, tokens);
  for (const WordToken& token : tokens) {
    append_token(encoding, token.id, *model.id_to_token(token.id), chars[utf8.chars[token.begin]].begin,
                 chars[utf8.chars[token.end - 1]].end);
  }
}

}  // namespace rlx
