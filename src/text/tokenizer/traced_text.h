#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "text/unicode/aligned_text.h"

namespace rlx {

/// The bytes [begin, end) of the text that the user gave.
struct TextOrigin {
  std::uint32_t begin, end;
};

/// A text on its way to the model: valid UTF-8, either a part of the user's text as it is or one that was made from it. Knows where
/// its bytes come from, unless nobody asks.
class TracedText {
 public:
  /// The user's bytes from `start` on, which must outlive it.
  TracedText(std::string_view bytes, std::size_t start) : view_(bytes), start_(start) {}
  /// Nothing yet.
  explicit TracedText(bool with_origins) : made_(true), with_origins_(with_origins) {}
  TracedText(const AlignedText& text, bool with_origins);

  std::string_view bytes() const { return made_ ? std::string_view(storage_) : view_; }
  std::string_view bytes(TextRange range) const { return bytes().substr(range.begin, range.end - range.begin); }
  /// Where a range comes from, whole code points of the user's text. {0, 0} for a made text without origins.
  TextOrigin origin(TextRange range) const;
  /// The code points of a range with their origins.
  AlignedText align(TextRange range) const;

  /// Extends a made text: by bytes that stand for a range of another text, or by a copy of the range.
  void append(std::string_view bytes, const TracedText& from, TextRange range);
  void copy(const TracedText& from, TextRange range);

 private:
  std::string_view view_;
  std::size_t start_ = 0;
  bool made_ = false;
  bool with_origins_ = false;
  std::string storage_;
  std::vector<TextOrigin> origins_;  // of each byte of a made text
};

/// A part of a text.
struct Piece {
  const TracedText* text;
  TextRange range;

  std::string_view bytes() const { return text->bytes(range); }
};

/// What a pre-tokenizer has made of a text so far: its pieces in order, and the texts that were made for them.
struct Pieces {
  std::deque<TracedText> made;
  std::vector<Piece> pieces;
  bool with_origins;
  bool at_start;  // the first piece begins where the user's text does
};

}  // namespace rlx
