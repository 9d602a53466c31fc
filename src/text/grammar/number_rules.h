#pragma once
#include <compare>
#include <functional>
#include <optional>
#include <string>

#include "formats/json/json.h"

namespace rlx::grammar {

/// Makes a rule of GBNF and gives its name.
using AddRule = std::function<std::string(std::string body)>;

/// A number as JSON writes it, digit by digit.
struct Decimal {
  static Decimal of(const json::Value& number);

  bool negative = false;
  std::string whole = "0", fraction;  // without zeros that say nothing

  friend bool operator==(const Decimal& a, const Decimal& b) = default;
};
std::strong_ordering operator<=>(const Decimal& a, const Decimal& b);

/// What a number must be.
struct NumberLimits {
  bool integer = false;
  std::optional<Decimal> least, most;
  bool above = false, below = false;  // the bounds themselves are not allowed
  std::optional<Decimal> step;        // above 0: the number is a multiple of it
};

/// GBNF for the numbers within limits, as digits of which each step knows how near a bound it is and what remains of the division by the
/// step. Numbers have at most 18 digits and then a fraction; exponents are left out, as what they mean is known only behind them. Empty
/// where there is no such number. Throws Error, after `place`, for a step whose remainders take too many rules.
std::string number_rules(const NumberLimits& limits, const AddRule& add_rule, const std::string& place);

}  // namespace rlx::grammar
