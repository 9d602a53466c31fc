#include "text/tokenizer/split_text.h"

#include <cstdint>
#include <utility>

#include "base/names.h"
#include "rlx/error.h"
#include "text/tokenizer/growth.h"
#include "text/unicode/unicode.h"

namespace rlx {

void TextSplitter::split(std::string_view text, FunctionRef<void(const Word&)> word) const {
  if (text.size() > UINT32_MAX) fail("tokenizer: a text of {} bytes is too long (allowed: under 4 GiB)", text.size());
  const TracedText whole = is_utf8(text) ? TracedText(text, 0) : TracedText(align(text), with_origins);
  for (const TextSegment& segment : added_tokens.split(whole.bytes(), false)) {
    const bool at_start = segment.range.begin == 0;
    if (segment.token) {
      word({{&whole, segment.range}, segment.token});
    } else if (normalizer) {
      AlignedText normalized = whole.align(segment.range);
      normalizer->apply(normalized, most_after_rules(normalized.size()));
      const bool keeps_start = !normalized.empty() && normalized.front().begin == segment.range.begin;
      split_part(TracedText(normalized, with_origins), at_start && keeps_start, word);
    } else if (segment.range.begin == 0 && segment.range.end == whole.bytes().size()) {
      split_part(whole, at_start, word);
    } else {
      TracedText part(with_origins);
      part.copy(whole, segment.range);
      split_part(part, at_start, word);
    }
  }
}

void TextSplitter::split_part(const TracedText& part, bool at_start, FunctionRef<void(const Word&)> word) const {
  for (const TextSegment& segment : added_tokens.split(part.bytes(), true)) {
    if (segment.token || !pre_tokenizer) {
      word({{&part, segment.range}, segment.token});
      continue;
    }
    Pieces pieces = {
        .made = {}, .pieces = {{&part, segment.range}}, .with_origins = with_origins, .at_start = at_start && segment.range.begin == 0};
    pre_tokenizer->split(pieces);
    for (const Piece& piece : pieces.pieces) word({piece, nullptr});
  }
}

}  // namespace rlx
