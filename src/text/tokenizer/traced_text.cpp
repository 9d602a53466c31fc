#include "text/tokenizer/traced_text.h"

#include "text/unicode/unicode.h"

namespace rlx {

TracedText::TracedText(const AlignedText& text, bool with_origins) : TracedText(with_origins) {
  storage_.reserve(text.size());
  if (with_origins) origins_.reserve(text.size());
  for (const AlignedChar& c : text) {
    unicode::append_utf8(storage_, c.value);
    if (with_origins) origins_.resize(storage_.size(), {c.begin, c.end});
  }
}

TextOrigin TracedText::origin(TextRange range) const {
  if (made_) {
    if (range.empty() || !with_origins_) return {0, 0};
    return {origins_[range.begin].begin, origins_[range.end - 1].end};
  }
  std::size_t begin = range.begin;
  std::size_t end = range.end;
  while (begin > 0 && begin < view_.size() && !unicode::starts_code_point(view_[begin])) --begin;
  while (end < view_.size() && !unicode::starts_code_point(view_[end])) ++end;
  return {static_cast<std::uint32_t>(start_ + begin), static_cast<std::uint32_t>(start_ + end)};
}

AlignedText TracedText::align(TextRange range) const {
  AlignedText result;
  const std::string_view all = bytes();
  result.reserve(range.end - range.begin);
  for (std::size_t at = range.begin; at < range.end;) {
    const unicode::Decoded next = unicode::decode_valid(all.data() + at);
    if (!made_) {
      const auto begin = static_cast<std::uint32_t>(start_ + at);
      result.push_back({next.value, begin, begin + static_cast<std::uint32_t>(next.bytes)});
    } else {
      const TextOrigin from = origin({at, at + next.bytes});
      result.push_back({next.value, from.begin, from.end});
    }
    at += next.bytes;
  }
  return result;
}

void TracedText::append(std::string_view bytes, const TracedText& from, TextRange range) {
  storage_ += bytes;
  if (with_origins_) origins_.resize(storage_.size(), from.origin(range));
}

void TracedText::copy(const TracedText& from, TextRange range) {
  storage_ += from.bytes(range);
  if (!with_origins_) return;
  const std::string_view all = from.bytes();
  for (std::size_t at = range.begin; at < range.end;) {
    const std::size_t length = unicode::decode_valid(all.data() + at).bytes;
    origins_.resize(origins_.size() + length, from.origin({at, at + length}));
    at += length;
  }
}

}  // namespace rlx
