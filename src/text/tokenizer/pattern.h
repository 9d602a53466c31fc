#pragma once
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/function_ref.h"
#include "formats/json/json_field.h"
#include "text/regex/regex.h"
#include "text/tokenizer/traced_text.h"

namespace rlx {

/// Calls its argument for each part of a text in order: whether it matches, and where it lies. The parts cover the text.
using MatchSink = FunctionRef<void(bool matches, TextRange range)>;

/// What is looked for in a text.
class TextPattern {
 public:
  virtual ~TextPattern() = default;
  virtual void cut(std::string_view text, MatchSink sink) const = 0;
};

/// Reads {"String": ...} or {"Regex": ...}, or a plain string. Throws Error for what is malformed.
std::unique_ptr<TextPattern> read_pattern(const JsonField& field);
std::unique_ptr<TextPattern> regex_pattern(std::string_view pattern, std::string_view what);
std::unique_ptr<TextPattern> string_pattern(std::string text);
/// Matches single code points.
std::unique_ptr<TextPattern> char_pattern(std::function<bool(char32_t)> test);

/// `text` with each match replaced. Throws Error where it grows beyond `most` bytes.
std::string replace_matches(const TextPattern& pattern, std::string_view text, std::string_view by, std::size_t most);

}  // namespace rlx
