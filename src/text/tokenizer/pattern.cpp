#include "text/tokenizer/pattern.h"

#include <utility>

#include "text/tokenizer/growth.h"
#include "text/unicode/unicode.h"

namespace rlx {
namespace {

class RegexPattern : public TextPattern {
 public:
  RegexPattern(std::string_view pattern, std::string_view what) : regex_(pattern, what) {}

  void cut(std::string_view text, MatchSink sink) const override {
    RegexSearch search(regex_, text);
    std::size_t done = 0;
    while (const auto match = search.next()) {
      if (done < match->begin) sink(false, {done, match->begin});
      sink(true, {match->begin, match->end});
      done = match->end;
    }
    if (done < text.size()) sink(false, {done, text.size()});
  }

 private:
  Regex regex_;
};

class StringPattern : public TextPattern {
 public:
  explicit StringPattern(std::string text) : text_(std::move(text)) {}

  void cut(std::string_view text, MatchSink sink) const override {
    std::size_t done = 0;
    for (std::size_t at = 0; !text_.empty() && (at = text.find(text_, done)) != std::string_view::npos; done = at + text_.size()) {
      if (done < at) sink(false, {done, at});
      sink(true, {at, at + text_.size()});
    }
    if (done < text.size()) sink(false, {done, text.size()});
  }

 private:
  std::string text_;
};

class CharPattern : public TextPattern {
 public:
  explicit CharPattern(std::function<bool(char32_t)> test) : test_(std::move(test)) {}

  void cut(std::string_view text, MatchSink sink) const override {
    std::size_t done = 0;
    for (std::size_t at = 0; at < text.size();) {
      const unicode::Decoded next = unicode::decode_valid(text.data() + at);
      const std::size_t end = at + next.bytes;
      if (test_(next.value)) {
        if (done < at) sink(false, {done, at});
        sink(true, {at, end});
        done = end;
      }
      at = end;
    }
    if (done < text.size()) sink(false, {done, text.size()});
  }

 private:
  std::function<bool(char32_t)> test_;
};

}  // namespace

std::unique_ptr<TextPattern> read_pattern(const JsonField& field) {
  if (field.value().is_string()) return string_pattern(field.as_string());
  if (const auto text = field.find("String")) return string_pattern(text->as_string());
  const JsonField regex = field.at("Regex");
  return regex_pattern(regex.as_string(), regex.place());
}

std::unique_ptr<TextPattern> regex_pattern(std::string_view pattern, std::string_view what) {
  return std::make_unique<RegexPattern>(pattern, what);
}

std::unique_ptr<TextPattern> string_pattern(std::string text) { return std::make_unique<StringPattern>(std::move(text)); }

std::unique_ptr<TextPattern> char_pattern(std::function<bool(char32_t)> test) { return std::make_unique<CharPattern>(std::move(test)); }

std::string replace_matches(const TextPattern& pattern, std::string_view text, std::string_view by, std::size_t most) {
  std::string result;
  pattern.cut(text, [&](bool matches, TextRange range) {
    const std::string_view part = matches ? by : text.substr(range.begin, range.end - range.begin);
    check_growth(result.size() + part.size(), most);
    result += part;
  });
  return result;
}

}  // namespace rlx
