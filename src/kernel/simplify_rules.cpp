// The rules of the simplifier. tests/kernel/simplify_test.cpp proves each over all values of small types.
#include <array>
#include <cctype>
#include <charconv>

#include "kernel/simplify.h"

namespace rlx {
namespace {

constexpr int numbers = for_floats | for_integers, bits = for_integers | for_bool, all = numbers | for_bool;

constexpr std::array rules{
    Rule{"neg(neg(x))", "x", numbers},
    Rule{"abs(abs(x))", "abs(x)", numbers},
    Rule{"abs(neg(x))", "abs(x)", for_floats},
    Rule{"floor(floor(x))", "floor(x)", for_floats},
    Rule{"floor(round(x))", "round(x)", for_floats},
    Rule{"round(round(x))", "round(x)", for_floats},
    Rule{"round(floor(x))", "floor(x)", for_floats},
    Rule{"logical_not(logical_not(x))", "x", bits},
    Rule{"add(x, neg(y))", "sub(x, y)", numbers},
    Rule{"add(neg(x), y)", "sub(y, x)", numbers},
    Rule{"sub(x, neg(y))", "add(x, y)", numbers},
    Rule{"mul(neg(x), neg(y))", "mul(x, y)", numbers},
    Rule{"div(neg(x), neg(y))", "div(x, y)", for_floats},
    Rule{"mul(x, 1)", "x", numbers},
    Rule{"mul(1, x)", "x", numbers},
    Rule{"mul(x, -1)", "neg(x)", for_floats},
    Rule{"mul(-1, x)", "neg(x)", for_floats},
    Rule{"div(x, 1)", "x", numbers},
    Rule{"div(x, -1)", "neg(x)", for_floats},
    Rule{"add(x, -0)", "x", numbers},
    Rule{"add(-0, x)", "x", numbers},
    Rule{"sub(x, 0)", "x", numbers},
    Rule{"sub(-0, x)", "neg(x)", numbers},
    Rule{"add(x, 0)", "x", for_integers},
    Rule{"add(0, x)", "x", for_integers},
    Rule{"sub(x, x)", "0", for_integers},
    Rule{"mul(x, 0)", "0", for_integers},
    Rule{"mul(0, x)", "0", for_integers},
    Rule{"max(x, x)", "x", numbers},
    Rule{"min(x, x)", "x", numbers},
    Rule{"max(min(x, y), y)", "y", for_integers},
    Rule{"min(max(x, y), y)", "y", for_integers},
    Rule{"logical_and(x, x)", "x", bits},
    Rule{"logical_or(x, x)", "x", bits},
    Rule{"logical_xor(x, x)", "0", bits},
    Rule{"logical_and(x, 0)", "0", bits},
    Rule{"logical_or(x, 0)", "x", bits},
    Rule{"logical_xor(x, 0)", "x", bits},
    Rule{"logical_and(x, 1)", "x", for_bool},
    Rule{"logical_and(1, x)", "x", for_bool},
    Rule{"logical_or(x, 1)", "1", for_bool},
    Rule{"logical_or(0, x)", "x", bits},
    Rule{"shl(x, 0)", "x", for_integers},
    Rule{"shr(x, 0)", "x", for_integers},
    Rule{"select(c, x, x)", "x", all},
    Rule{"select(1, x, y)", "x", all},
    Rule{"select(0, x, y)", "y", all},
    Rule{"select(logical_not(c), x, y)", "select(c, y, x)", all},
};
static_assert(rules.size() <= 100, "more rules than a reader can keep in mind");

/// A side of a rule: op(argument, ...), a letter or a number.
class PatternParser {
 public:
  explicit PatternParser(std::string_view text) : text_(text) {}

  Pattern parse() {
    Pattern p;
    const std::size_t begin = at_;
    while (at_ < text_.size() && text_[at_] != '(' && text_[at_] != ',' && text_[at_] != ')') ++at_;
    const std::string_view word = text_.substr(begin, at_ - begin);
    if (at_ < text_.size() && text_[at_] == '(') {
      p.kind = Pattern::Kind::op;
      p.op = op_named(word);
      do {
        at_ += text_[at_] == ',' ? 2 : 1;
        p.args.push_back(parse());
      } while (text_[at_] == ',');
      ++at_;
    } else if (std::isalpha(static_cast<unsigned char>(word[0]))) {
      p.letter = word[0];
    } else {
      p.kind = Pattern::Kind::number;
      std::from_chars(word.data(), word.data() + word.size(), p.number);
    }
    return p;
  }

 private:
  static ScalarOp op_named(std::string_view word) {
    for (int i = 0; i <= static_cast<int>(ScalarOp::select); ++i)
      if (name(static_cast<ScalarOp>(i)) == word) return static_cast<ScalarOp>(i);
    fail_internal("simplify: no scalar op '{}'", word);
  }
  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

std::span<const Rule> simplify_rules() { return rules; }

Pattern parse_pattern(std::string_view text) { return PatternParser(text).parse(); }

}  // namespace rlx
