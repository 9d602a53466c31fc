#include "formats/tensors/npy_header.h"

#include <optional>

#include "base/checked.h"
#include "base/names.h"
#include "formats/tensors/tensor_view.h"
#include "rlx/error.h"

namespace rlx {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

/// Reads the subset of Python's literals that numpy writes into headers.
class HeaderParser {
 public:
  HeaderParser(std::string_view text, std::string_view file) : text_(text), file_(file) {}

  NpyHeader parse() {
    expect('{', "a dict literal");
    while (!accept('}')) {
      pair();
      if (accept(',')) continue;
      expect('}', "',' or '}'");
      break;
    }
    if (peek() != '\0' || at_ != text_.size()) fail_here("the end of the header");
    if (!has_descr_) fail("{}: header: missing key 'descr'", file_);
    if (!has_order_) fail("{}: header: missing key 'fortran_order'", file_);
    if (!has_shape_) fail("{}: header: missing key 'shape'", file_);
    return header_;
  }

 private:
  void pair() {
    const std::string_view key = string("a key");
    bool* seen = key == "descr" ? &has_descr_ : key == "fortran_order" ? &has_order_ : key == "shape" ? &has_shape_ : nullptr;
    if (!seen) fail("{}: header: unknown key {} (allowed: descr, fortran_order, shape)", file_, quote_name(key));
    if (*seen) fail("{}: header: duplicate key {}", file_, quote_name(key));
    *seen = true;
    expect(':', "':'");
    if (key == "descr") header_.descr = descr();
    else if (key == "shape") header_.shape = shape();
    else header_.fortran_order = boolean();
  }

  std::string descr() {
    if (peek() == '[' || peek() == '(' || peek() == '{') fail("{}: header: descr: structured dtypes are not supported", file_);
    return std::string(string("descr: a string"));
  }

  bool boolean() {
    if (accept_word("True")) return true;
    if (accept_word("False")) return false;
    fail_here("fortran_order: True or False");
  }

  std::vector<std::int64_t> shape() {
    std::vector<std::int64_t> sizes;
    expect('(', "shape: a tuple of sizes");
    bool comma = true;
    while (!accept(')')) {
      if (!comma) fail_here("shape: ',' or ')'");
      if (sizes.size() == max_file_rank) fail("{}: header: shape has more than {} dimensions", file_, max_file_rank);
      sizes.push_back(dimension());
      comma = accept(',');
    }
    if (sizes.size() == 1 && !comma) fail("{}: header: shape is a number in brackets, not a tuple", file_);
    return sizes;
  }

  std::int64_t dimension() {
    const bool negative = accept('-');
    if (!is_digit(peek())) fail_here("shape: an integer");
    const std::size_t begin = at_;
    while (at_ < text_.size() && is_digit(text_[at_])) ++at_;
    const std::string_view digits = text_.substr(begin, at_ - begin);
    if (at_ < text_.size() && text_[at_] == 'L') ++at_;  // Python 2 wrote its long integers so
    if (negative) fail("{}: header: shape has the negative dimension -{}", file_, digits.substr(0, 40));
    if (digits.size() > 1 && digits[0] == '0') fail("{}: header: shape: {} starts with a zero", file_, digits.substr(0, 40));
    std::optional<std::int64_t> value = 0;
    for (char digit : digits) {
      value = checked_mul(*value, std::int64_t{10});
      if (value) value = checked_add<std::int64_t>(*value, digit - '0');
      if (!value) fail("{}: header: shape: dimension {} does not fit 63 bits", file_, digits.substr(0, 40));
    }
    return *value;
  }

  std::string_view string(std::string_view wanted) {
    const char mark = peek();
    if (mark != '\'' && mark != '"') fail_here(wanted);
    const std::size_t begin = ++at_;
    while (at_ < text_.size() && text_[at_] != mark && text_[at_] != '\\' && text_[at_] != '\n') ++at_;
    if (at_ == text_.size() || text_[at_] != mark) fail_here("the end of the string (escapes are not allowed)");
    return text_.substr(begin, at_++ - begin);
  }

  /// The next character that is not a space; '\0' at the end.
  char peek() {
    while (at_ < text_.size() && is_space(text_[at_])) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool accept(char c) {
    if (peek() != c || at_ == text_.size()) return false;
    ++at_;
    return true;
  }
  bool accept_word(std::string_view word) {
    peek();
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }
  void expect(char c, std::string_view wanted) {
    if (!accept(c)) fail_here(wanted);
  }
  [[noreturn]] void fail_here(std::string_view wanted) {
    fail("{}: header: byte {}: {} is expected, not {}", file_, at_, wanted,
         at_ < text_.size() ? quote_name(text_.substr(at_, 12)) : "the end");
  }

  std::string_view text_, file_;
  std::size_t at_ = 0;
  NpyHeader header_;
  bool has_descr_ = false, has_order_ = false, has_shape_ = false;
};

}  // namespace

NpyHeader parse_npy_header(std::string_view text, std::string_view file) { return HeaderParser(text, file).parse(); }

}  // namespace rlx
