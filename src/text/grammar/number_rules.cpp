#include "text/grammar/number_rules.h"

#include <algorithm>
#include <compare>
#include <cstdint>
#include <map>
#include <numeric>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "rlx/error.h"

namespace rlx::grammar {
namespace {

constexpr int most_digits = 18, most_decimals = 17;
constexpr int exact_digits = 15;  // that readers, which take numbers for f64, keep apart
constexpr std::uint64_t largest_step = std::uint64_t{1} << 31;
constexpr std::size_t most_rules_of_step = 10'000;

/// Whether all digits from `begin` on are zeros.
bool ends(const std::string& digits, std::size_t begin) { return digits.find_first_not_of('0', begin) == std::string::npos; }

std::strong_ordering compare_magnitudes(const Decimal& a, const Decimal& b) {
  if (a.whole.size() != b.whole.size()) return a.whole.size() <=> b.whole.size();
  return std::pair(a.whole, a.fraction) <=> std::pair(b.whole, b.fraction);
}

/// A bound of magnitudes: numbers without their sign.
struct Bound {
  Decimal value;
  bool open = false;  // the bound itself is not allowed

  /// The digit at a place: `left` digits of the whole part from the point, or else `decimals` behind it.
  int digit(int left, int decimals) const {
    if (left > 0) return value.whole[value.whole.size() - static_cast<std::size_t>(left)] - '0';
    const auto at = static_cast<std::size_t>(decimals);
    return at < value.fraction.size() ? value.fraction[at] - '0' : 0;
  }
  int digits() const { return static_cast<int>(value.whole.size()); }
};

/// The magnitudes from `low` to `high`, where there is one.
struct Range {
  Bound low;
  std::optional<Bound> high;
};

/// What is known between two digits.
struct State {
  int left, decimals;  // digits to come before the point; digits behind it so far
  bool low, high;      // all digits so far are those of the bound
  std::uint64_t rest;  // what the digits so far leave, as far as it matters

  friend auto operator<=>(const State&, const State&) = default;
};

class NumberWriter {
 public:
  NumberWriter(const NumberLimits& limits, const AddRule& add_rule, const std::string& place) : add_rule_(add_rule), place_(place) {
    choose_decimals(limits);
    if (limits.step) choose_step(*limits.step, limits.integer);
  }

  /// Alternatives for the magnitudes in a range, each after `sign`.
  void write(const Range& range, std::string_view sign, std::vector<std::string>& alternatives) {
    range_ = &range;
    std::erase_if(known_, [](const auto& state) { return state.first.low || state.first.high; });
    for (int length = range.low.digits(); length <= most_digits; ++length) {
      if (range.high && length > range.high->digits()) break;
      const bool low = length == range.low.digits(), high = range.high && length == range.high->digits();
      const std::string digits = next_digits({length, 0, low, high, 0}, length > 1 ? 1 : 0);
      if (!digits.empty()) alternatives.push_back(fmt::format("{}{}", sign, digits));
    }
  }

 private:
  /// As many as the bounds have, and else as many as readers keep apart.
  void choose_decimals(const NumberLimits& limits) {
    if (limits.integer) return;
    int wanted = 1, digits = 1;
    for (const auto& bound : {limits.least, limits.most}) {
      if (!bound) continue;
      wanted = std::max(wanted, static_cast<int>(std::min<std::size_t>(bound->fraction.size(), most_decimals)));
      digits = std::max(digits, static_cast<int>(std::min<std::size_t>(bound->whole.size(), exact_digits)));
    }
    decimals_ = std::max(wanted, exact_digits - digits);
  }

  /// As an integer of the last place that matters.
  void choose_step(const Decimal& step, bool integer) {
    const std::string digits = (step.whole == "0" ? "" : step.whole) + step.fraction;
    for (const char digit : digits) {
      step_ = step_ * 10 + static_cast<std::uint64_t>(digit - '0');
      if (step_ >= largest_step) fail("{}: multipleOf has more digits than are supported (allowed: below 2^31 without the point)", place_);
    }
    step_decimals_ = static_cast<int>(step.fraction.size());
    if (!integer) {
      decimals_ = step_decimals_;
    } else {  // x is a multiple of 2.5 where it is one of 5
      step_ /= std::gcd(step_, power_of_ten(step_decimals_));
      step_decimals_ = 0;
    }
  }

  /// Modulo the step, but for divisors of it.
  std::uint64_t power_of_ten(int exponent) const {
    std::uint64_t power = 1;
    for (int i = 0; i < exponent; ++i) power = power * 10 % step_;
    return power == 0 ? step_ : power;
  }

  int digits_to_come(const State& state) const { return state.left + step_decimals_ - state.decimals; }

  /// What zeros in every place that is left would leave.
  std::uint64_t rest_with_zeros(const State& state) const { return state.rest * (power_of_ten(digits_to_come(state)) % step_) % step_; }

  /// Whether digits that are still to come can make it a multiple.
  bool can_divide(const State& state) const {
    if (step_ == 0) return true;
    const std::uint64_t missing = (step_ - rest_with_zeros(state)) % step_;
    std::uint64_t room = 1;
    for (int i = 0; i < digits_to_come(state) && room <= missing; ++i) room *= 10;
    return missing < room;
  }

  bool may_end(const State& state) const {
    if (state.left > 0) return false;
    const auto read = static_cast<std::size_t>(state.decimals);
    if (state.low && (range_->low.open || !ends(range_->low.value.fraction, std::min(read, range_->low.value.fraction.size()))))
      return false;
    if (state.high && range_->high->open && ends(range_->high->value.fraction, std::min(read, range_->high->value.fraction.size())))
      return false;
    return step_ == 0 || rest_with_zeros(state) == 0;
  }

  /// The state after a digit; nothing where it leaves the range.
  std::optional<State> after(const State& state, int digit) const {
    State next = state;
    if (state.low) {
      const int bound = range_->low.digit(state.left, state.decimals);
      if (digit < bound) return std::nullopt;
      next.low = digit == bound;
    }
    if (state.high) {
      const int bound = range_->high->digit(state.left, state.decimals);
      if (digit > bound) return std::nullopt;
      next.high = digit == bound;
    }
    if (state.left > 0) --next.left;
    else ++next.decimals;
    if (step_ > 0) {
      next.rest = (state.rest * 10 + static_cast<std::uint64_t>(digit)) % step_;
      next.rest %= step_ / std::gcd(step_, power_of_ten(digits_to_come(next)));
    }
    return can_divide(next) ? std::optional(next) : std::nullopt;
  }

  /// The digits that may come, each with what may follow it. Empty where none leads to a number.
  std::string next_digits(const State& state, int first) {
    std::map<std::string, std::string> digits;  // by what follows
    for (int digit = first; digit < 10; ++digit) {
      const auto next = after(state, digit);
      const std::optional<std::string> rest = next ? following(*next) : std::nullopt;
      if (rest) digits[*rest] += static_cast<char>('0' + digit);
    }
    std::vector<std::string> alternatives;
    for (const auto& [rest, which] : digits) alternatives.push_back(fmt::format("[{}]{}{}", which, rest.empty() ? "" : " ", rest));
    return alternatives.empty() ? "" : fmt::format("({})", fmt::join(alternatives, " | "));
  }

  /// What may follow the digits so far: empty for nothing. No value where no number begins so.
  std::optional<std::string> following(const State& state) {
    if (step_ == 0 && !state.low && !state.high) return any_digits(state);
    if (const auto known = known_.find(state); known != known_.end()) return known->second;
    if (known_.size() >= most_rules_of_step)
      fail("{}: multipleOf takes more than {} rules within these limits", place_, most_rules_of_step);
    const bool can_end = may_end(state), more = state.left > 0 || state.decimals < decimals_;
    std::string digits = more ? next_digits(state, 0) : "";
    if (!digits.empty() && state.left == 0 && state.decimals == 0) digits = fmt::format("(\".\" {})", digits);
    std::optional<std::string> result;
    if (!digits.empty()) result = add_rule_(digits + (can_end ? "?" : ""));
    else if (can_end) result = "";
    known_.emplace(state, result);
    return result;
  }

  /// Behind digits that have left both bounds behind.
  std::string any_digits(const State& state) const {
    if (state.decimals > 0) return state.decimals < decimals_ ? fmt::format("[0-9]{{0,{}}}", decimals_ - state.decimals) : "";
    std::string text = state.left > 0 ? fmt::format("[0-9]{{{}}}", state.left) : "";
    if (decimals_ > 0) text += fmt::format("{}(\".\" [0-9]{{1,{}}})?", text.empty() ? "" : " ", decimals_);
    return text;
  }

  const AddRule& add_rule_;
  const std::string& place_;
  int decimals_ = 0;
  std::uint64_t step_ = 0;  // 0: none
  int step_decimals_ = 0;
  const Range* range_ = nullptr;
  std::map<State, std::optional<std::string>> known_;
};

std::string without_leading_zeros(std::string digits) {
  digits.erase(0, std::min(digits.find_first_not_of('0'), digits.size()));
  return digits.empty() ? "0" : digits;
}

/// The numbers of one sign as magnitudes, between bounds that are on its side of 0 or across it.
std::optional<Range> range_of(bool negative, const NumberLimits& limits) {
  const auto& near = negative ? limits.most : limits.least;
  const auto& far = negative ? limits.least : limits.most;
  const bool near_open = negative ? limits.below : limits.above, far_open = negative ? limits.above : limits.below;
  if (far && far->negative != negative) return std::nullopt;
  Range range;
  range.low.open = negative;  // 0 has no sign
  if (near && near->negative == negative) {
    range.low.open = near_open;
    range.low.value = *near;
  }
  range.low.value.negative = false;
  if (far && far->whole.size() <= static_cast<std::size_t>(most_digits)) range.high = Bound{*far, far_open};
  if (range.high && compare_magnitudes(range.low.value, range.high->value) > 0) return std::nullopt;
  return range;
}

}  // namespace

Decimal Decimal::of(const json::Value& number) {
  std::string text = number.is_number_float() ? fmt::format("{}", number.get<double>()) : number.dump();
  Decimal result;
  result.negative = text.starts_with('-');
  if (result.negative) text.erase(0, 1);
  int exponent = 0;
  if (const std::size_t at = text.find_first_of("eE"); at != std::string::npos) exponent = std::stoi(text.substr(at + 1)), text.erase(at);
  const std::size_t point = std::min(text.find('.'), text.size());
  std::string digits = text.substr(0, point) + (point < text.size() ? text.substr(point + 1) : "");
  auto places = static_cast<std::ptrdiff_t>(point) + exponent;  // before the point
  if (places < 0) digits.insert(0, static_cast<std::size_t>(-places), '0'), places = 0;
  if (static_cast<std::size_t>(places) > digits.size()) digits.resize(static_cast<std::size_t>(places), '0');
  result.whole = without_leading_zeros(digits.substr(0, static_cast<std::size_t>(places)));
  result.fraction = digits.substr(static_cast<std::size_t>(places));
  while (result.fraction.ends_with('0')) result.fraction.pop_back();
  if (result.whole == "0" && result.fraction.empty()) result.negative = false;
  return result;
}

std::strong_ordering operator<=>(const Decimal& a, const Decimal& b) {
  if (a.negative != b.negative) return b.negative <=> a.negative;
  return a.negative ? compare_magnitudes(b, a) : compare_magnitudes(a, b);
}

std::string number_rules(const NumberLimits& limits, const AddRule& add_rule, const std::string& place) {
  NumberWriter writer(limits, add_rule, place);
  std::vector<std::string> alternatives;
  for (const bool negative : {true, false})
    if (const auto range = range_of(negative, limits)) writer.write(*range, negative ? "\"-\" " : "", alternatives);
  return alternatives.empty() ? "" : add_rule(fmt::format("{}", fmt::join(alternatives, " | ")));
}

}  // namespace rlx::grammar
