#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace rlx::command {

/// Text that is printed as it is made, on lines that break between words: a word that reaches the edge of the terminal is taken back and
/// begun on the next line.
class WrappedText {
 public:
  /// `columns` of the terminal; 0: lines break where the text says.
  explicit WrappedText(std::size_t columns) : columns_(columns) {}

  /// What is sent to the terminal for the next piece of the text, which is whole code points.
  std::string next(std::string_view piece);

 private:
  std::size_t width_of(char32_t character) const;
  void put(char32_t character, std::string& out);

  std::size_t columns_;
  std::size_t used_ = 0;  // columns of the line so far
  std::string word_;      // at its end
  std::size_t word_columns_ = 0;
};

/// Columns of the terminal of standard output but for the last, behind which its cursor stands in no column; 0 where it is none that
/// understands escape sequences.
std::size_t wrapping_columns();

}  // namespace rlx::command
