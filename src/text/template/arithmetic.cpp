#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "base/names.h"
#include "text/template/python_operations.h"
#include "text/template/python_text.h"
#include "text/template/renderer.h"

namespace rlx::jinja {
namespace {

[[noreturn]] void refuse_types(Renderer& run, std::string_view op, const Value& a, const Value& b) {
  for (const Value& value : {a, b})
    if (value.is<Undefined>()) run.refuse("{}", value.as<Undefined>().why);
  run.refuse("'{}' is not defined for values of types {} and {}", op, type_name(a), type_name(b));
}

/// Rounds towards minus infinity, as Python does.
Integer floor_quotient(Integer a, Integer b) { return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0); }

double floor_remainder(double a, double b) {
  const double rest = std::fmod(a, b);
  if (rest == 0) return std::copysign(0.0, b);
  return (rest < 0) != (b < 0) ? rest + b : rest;
}

[[noreturn]] void refuse_size(Renderer& run) { run.refuse("an integer does not fit 128 bits"); }

Integer integer_power(Renderer& run, Integer base, Integer exponent) {
  Integer result = 1;
  for (; exponent > 0; exponent >>= 1) {
    if ((exponent & 1) != 0 && __builtin_mul_overflow(result, base, &result)) refuse_size(run);
    if (exponent > 1 && __builtin_mul_overflow(base, base, &base)) refuse_size(run);
  }
  return result;
}

Value of_integers(Renderer& run, std::string_view op, Integer a, Integer b) {
  Integer result = 0;
  bool overflow = false;
  if (op == "+") overflow = __builtin_add_overflow(a, b, &result);
  else if (op == "-") overflow = __builtin_sub_overflow(a, b, &result);
  else if (op == "*") overflow = __builtin_mul_overflow(a, b, &result);
  else if (op == "**") return b < 0 ? Value(std::pow(static_cast<double>(a), static_cast<double>(b))) : Value(integer_power(run, a, b));
  else if (op == "/") return static_cast<double>(a) / static_cast<double>(b);
  else if (b == -1 && op == "//") overflow = __builtin_sub_overflow(Integer{0}, a, &result);
  else if (op == "//") result = floor_quotient(a, b);
  else if (b != -1) result = a - floor_quotient(a, b) * b;
  if (overflow) refuse_size(run);
  return result;
}

Value of_floats(Renderer& run, std::string_view op, double a, double b) {
  if (op == "+") return a + b;
  if (op == "-") return a - b;
  if (op == "*") return a * b;
  if (op == "/") return a / b;
  if (op == "//") return std::floor((a - floor_remainder(a, b)) / b + 0.5);
  if (op == "%") return floor_remainder(a, b);
  if (a < 0 && b != std::floor(b)) run.refuse("'**': {} to the power of {} is a complex number", a, b);
  const double result = std::pow(a, b);
  if (std::isinf(result) && std::isfinite(a) && std::isfinite(b)) run.refuse("'**': the result is out of range");
  return result;
}

Value of_numbers(Renderer& run, std::string_view op, const Value& a, const Value& b) {
  const bool divides = op == "/" || op == "//" || op == "%";
  if (divides && as_float(b) == 0) run.refuse("'{}': division by zero", op);
  if (op == "**" && as_float(a) == 0 && as_float(b) < 0) run.refuse("'**': zero to a negative power");
  const auto left = as_integer(a), right = as_integer(b);
  return left && right ? of_integers(run, op, *left, *right) : of_floats(run, op, as_float(a), as_float(b));
}

bool is_list(const Value& value) { return value.is<Sequence*>() && value.as<Sequence*>()->kind <= Sequence::Kind::tuple; }

Value joined(Renderer& run, const Value& a, const Value& b) {
  const auto both = [&](auto test) { return test(a) && test(b); };
  if (both([](const Value& value) { return value.is<std::string_view>(); }))
    return run.string(fmt::format("{}{}", a.as<std::string_view>(), b.as<std::string_view>()));
  if (!both(is_list) || a.as<Sequence*>()->kind != b.as<Sequence*>()->kind) refuse_types(run, "+", a, b);
  std::vector<Value> items = items_of(run, a);
  const std::vector<Value>& more = b.as<Sequence*>()->items;
  items.insert(items.end(), more.begin(), more.end());
  return run.memory().sequence(a.as<Sequence*>()->kind, std::move(items));
}

Value repeated(Renderer& run, const Value& value, const Value& times) {
  const auto count = static_cast<std::size_t>(std::max<std::ptrdiff_t>(0, as_index(run, times, "a number of repetitions")));
  const bool text = value.is<std::string_view>();
  const std::size_t size = text ? value.as<std::string_view>().size() : value.as<Sequence*>()->items.size() * sizeof(Value);
  if (size == 0 || count == 0) return text ? Value(std::string_view()) : run.memory().sequence(value.as<Sequence*>()->kind, {});
  run.memory().charge(count > std::numeric_limits<std::size_t>::max() / size ? std::numeric_limits<std::size_t>::max() : count * size);
  std::string characters;
  std::vector<Value> items;
  for (std::size_t i = 0; i < count; ++i) {
    if (text) characters += value.as<std::string_view>();
    else items.insert(items.end(), value.as<Sequence*>()->items.begin(), value.as<Sequence*>()->items.end());
  }
  return text ? run.string(std::move(characters)) : Value(run.memory().sequence(value.as<Sequence*>()->kind, std::move(items)));
}

}  // namespace

Value binary(Renderer& run, std::string_view op, const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) return of_numbers(run, op, a, b);
  if (op == "+") return joined(run, a, b);
  if (op == "%" && a.is<std::string_view>()) return run.string(percent_format(run, a.as<std::string_view>(), b));
  const auto repeats = [](const Value& value, const Value& times) {
    return (value.is<std::string_view>() || is_list(value)) && as_integer(times);
  };
  if (op == "*" && repeats(a, b)) return repeated(run, a, b);
  if (op == "*" && repeats(b, a)) return repeated(run, b, a);
  refuse_types(run, op, a, b);
}

Value unary(Renderer& run, std::string_view op, const Value& a) {
  if (a.is<Undefined>()) run.refuse("{}", a.as<Undefined>().why);
  if (!a.is_number()) run.refuse("'{}' is not defined for a value of type {}", op, type_name(a));
  if (a.is<double>()) return op == "-" ? -a.as<double>() : a.as<double>();
  if (op == "+") return *as_integer(a);
  return of_integers(run, "-", 0, *as_integer(a));
}

}  // namespace rlx::jinja
