#pragma once
#include <span>
#include <string>
#include <string_view>

#include "kernel/kernel.h"

namespace rlx {

/// The element types for which a rule holds.
enum RuleTypes : std::uint8_t { for_floats = 1, for_integers = 2, for_bool = 4 };

/// `left` is written as `right`, which is smaller, or of the same size and cheaper. Letters stand for any value, of one type but for
/// the `c` of a select; names for scalar ops; numbers for constants.
struct Rule {
  std::string_view left, right;
  int types;
};

std::span<const Rule> simplify_rules();

/// A side of a rule as a tree.
struct Pattern {
  enum class Kind : std::uint8_t { letter, number, op } kind = Kind::letter;
  char letter = 'x';
  double number = 0;
  ScalarOp op = ScalarOp::neg;
  std::vector<Pattern> args;
};
Pattern parse_pattern(std::string_view text);

/// Applies the rules to every expression of a kernel once, from the operands up; computes what only depends on constants; turns
/// divisions by powers of two into products; and leaves rounding to the stores that do it. Guarantees: the same values, but for the sign
/// and payload of NaN.
void simplify(Kernel& kernel);

}  // namespace rlx
