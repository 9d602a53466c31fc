#pragma once
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace rlx::jinja {

struct Token {
  enum class Kind : std::uint8_t { text, block_begin, block_end, output_begin, output_end, name, string, integer, real, op, end };
  Kind kind = Kind::end;
  int line = 0;
  std::string_view text;  // of a string, what it means

  bool is_op(std::string_view op) const { return kind == Kind::op && text == op; }
  bool is_name(std::string_view name) const { return kind == Kind::name && text == name; }
};

/// The tokens of a template, an `end` last, after white space was removed as transformers has it: `-` at a tag removes all on that side;
/// else the line break after a tag (trim_blocks) and the blanks before it on its line (lstrip_blocks) go, unless it prints a value or has a
/// `+`. `strings` gets the texts that do not stand in `source`. Throws Error "{name}: line 3: ...".
std::vector<Token> tokens_of(std::string_view source, const std::string& name, std::deque<std::string>& strings);

}  // namespace rlx::jinja
