#include "terminal/wrapped_text.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

#include <fmt/format.h>
#include <utf8proc.h>

#include "terminal/terminal.h"
#include "text/unicode/unicode.h"

namespace rlx::command {

constexpr std::size_t tab_stop = 8;

std::size_t wrapping_columns() {
  winsize size{};
  return understands_escapes() && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col - 1U : 0;
}

std::string WrappedText::next(std::string_view piece) {
  if (columns_ == 0) return std::string(piece);
  std::string out;
  for (const char32_t character : unicode::to_utf32(std::string(piece))) put(character, out);
  return out;
}

/// Of a tab, as many as there are to its stop.
std::size_t WrappedText::width_of(char32_t character) const {
  if (character == U'\t') return tab_stop - used_ % tab_stop;
  return static_cast<std::size_t>(std::max(utf8proc_charwidth(static_cast<utf8proc_int32_t>(character)), 0));
}

void WrappedText::put(char32_t character, std::string& out) {
  const std::size_t width = width_of(character);
  if (character == U'\n') {
    used_ = word_columns_ = 0;
    word_.clear();
  } else if (character == U' ' || character == U'\t' || width > 1) {  // East Asian lines break between any two characters
    if (used_ + width > columns_) out += '\n', used_ = 0;
    used_ += width_of(character), word_columns_ = 0;
    word_.clear();
  } else {
    if (used_ + width > columns_ && word_columns_ > 0 && word_columns_ < used_) {
      out += fmt::format("\x1b[{}D\x1b[K\n{}", word_columns_, word_);
      used_ = word_columns_;
    } else if (used_ + width > columns_) {
      out += '\n', used_ = 0;
    }
    unicode::append_utf8(word_, character);
    used_ += width, word_columns_ += width;
  }
  unicode::append_utf8(out, character);
}

}  // namespace rlx::command
