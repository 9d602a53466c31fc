#include <algorithm>
#include <array>
#include <string_view>

#include "text/template/functions.h"
#include "text/template/python_operations.h"
#include "text/template/python_text.h"
#include "text/template/renderer.h"

namespace rlx::jinja {
namespace {

const Value& subject(const Bound& arguments) { return *arguments[0]; }

template <class T>
Value is_type(Renderer& /*run*/, const Bound& arguments) {
  return subject(arguments).is<T>();
}

Value is_defined(Renderer& /*run*/, const Bound& arguments) { return !subject(arguments).is<Undefined>(); }

template <bool value>
Value is_exactly(Renderer& /*run*/, const Bound& arguments) {
  return subject(arguments).is<bool>() && subject(arguments).as<bool>() == value;
}

Value is_a_number(Renderer& /*run*/, const Bound& arguments) { return subject(arguments).is_number(); }

Value is_sequence(Renderer& /*run*/, const Bound& arguments) {
  const Value& value = subject(arguments);
  const bool indexed = value.is<Sequence*>() && value.as<Sequence*>()->kind <= Sequence::Kind::range;
  return indexed || value.is<Dict*>() || value.is<std::string_view>() || value.is<Undefined>();
}

Value is_iterable(Renderer& /*run*/, const Bound& arguments) {
  const Value& value = subject(arguments);
  return value.is<Sequence*>() || value.is<Dict*>() || value.is<std::string_view>() || value.is<Undefined>();
}

Value is_callable(Renderer& /*run*/, const Bound& arguments) {
  const Value& value = subject(arguments);
  return value.is<Undefined>() || (value.is<Object*>() && value.as<Object*>()->callable());
}

Value remainder_is(Renderer& run, const Bound& arguments, const Value& divisor, bool zero) {
  return equal(run, binary(run, "%", subject(arguments), divisor), Integer{0}) == zero;
}
Value is_even(Renderer& run, const Bound& arguments) { return remainder_is(run, arguments, Integer{2}, true); }
Value is_odd(Renderer& run, const Bound& arguments) { return equal(run, binary(run, "%", subject(arguments), Integer{2}), Integer{1}); }
Value is_divisible(Renderer& run, const Bound& arguments) { return remainder_is(run, arguments, *arguments[1], true); }

template <std::string (*change)(std::string_view), std::string (*opposite)(std::string_view)>
Value has_case(Renderer& run, const Bound& arguments) {
  const std::string_view text = text_of(run, subject(arguments));
  run.count_scan(text.size());
  return change(text) == text && opposite(text) != text;
}

Value is_in(Renderer& run, const Bound& arguments) { return contains(run, *arguments[1], subject(arguments)); }
Value is_equal(Renderer& run, const Bound& arguments) { return equal(run, subject(arguments), *arguments[1]); }
Value is_unequal(Renderer& run, const Bound& arguments) { return !equal(run, subject(arguments), *arguments[1]); }
Value is_less(Renderer& run, const Bound& arguments) { return less(run, subject(arguments), *arguments[1]); }
Value is_greater(Renderer& run, const Bound& arguments) { return less(run, *arguments[1], subject(arguments)); }
Value is_at_most(Renderer& run, const Bound& arguments) {
  return less(run, subject(arguments), *arguments[1]) || equal(run, subject(arguments), *arguments[1]);
}
Value is_at_least(Renderer& run, const Bound& arguments) {
  return less(run, *arguments[1], subject(arguments)) || equal(run, subject(arguments), *arguments[1]);
}

/// The same object; of values that are not kept as objects, an equal one of the same type.
Value is_same(Renderer& run, const Bound& arguments) {
  const Value &a = subject(arguments), &b = *arguments[1];
  if (a.index() != b.index()) return false;
  if (a.is<Sequence*>()) return a.as<Sequence*>() == b.as<Sequence*>();
  if (a.is<Dict*>()) return a.as<Dict*>() == b.as<Dict*>();
  return equal(run, a, b);
}

Value never(Renderer& /*run*/, const Bound& /*arguments*/) { return false; }

Value is_filter(Renderer& run, const Bound& arguments) { return find_filter(text_of(run, subject(arguments))) != nullptr; }
Value is_test(Renderer& run, const Bound& arguments) { return find_test(text_of(run, subject(arguments))) != nullptr; }

constexpr std::array tests = {
    Function{"!=", "value other", 2, is_unequal},
    Function{"<", "value other", 2, is_less},
    Function{"<=", "value other", 2, is_at_most},
    Function{"==", "value other", 2, is_equal},
    Function{">", "value other", 2, is_greater},
    Function{">=", "value other", 2, is_at_least},
    Function{"boolean", "value", 1, is_type<bool>},
    Function{"callable", "value", 1, is_callable},
    Function{"defined", "value", 1, is_defined},
    Function{"divisibleby", "value num", 2, is_divisible},
    Function{"eq", "value other", 2, is_equal},
    Function{"equalto", "value other", 2, is_equal},
    Function{"escaped", "value", 1, never},
    Function{"even", "value", 1, is_even},
    Function{"false", "value", 1, is_exactly<false>},
    Function{"filter", "value", 1, is_filter},
    Function{"float", "value", 1, is_type<double>},
    Function{"ge", "value other", 2, is_at_least},
    Function{"greaterthan", "value other", 2, is_greater},
    Function{"gt", "value other", 2, is_greater},
    Function{"in", "value seq", 2, is_in},
    Function{"integer", "value", 1, is_type<Integer>},
    Function{"iterable", "value", 1, is_iterable},
    Function{"le", "value other", 2, is_at_most},
    Function{"lessthan", "value other", 2, is_less},
    Function{"lower", "value", 1, has_case<lower, upper>},
    Function{"lt", "value other", 2, is_less},
    Function{"mapping", "value", 1, is_type<Dict*>},
    Function{"ne", "value other", 2, is_unequal},
    Function{"none", "value", 1, is_type<None>},
    Function{"number", "value", 1, is_a_number},
    Function{"odd", "value", 1, is_odd},
    Function{"sameas", "value other", 2, is_same},
    Function{"sequence", "value", 1, is_sequence},
    Function{"string", "value", 1, is_type<std::string_view>},
    Function{"test", "value", 1, is_test},
    Function{"true", "value", 1, is_exactly<true>},
    Function{"undefined", "value", 1, is_type<Undefined>},
    Function{"upper", "value", 1, has_case<upper, lower>},
};

}  // namespace

const Function* find_test(std::string_view name) {
  const auto* found = std::find_if(tests.begin(), tests.end(), [&](const Function& test) { return test.name == name; });
  return found == tests.end() ? nullptr : found;
}

std::vector<std::string_view> test_names() {
  std::vector<std::string_view> names;
  for (const Function& test : tests) names.push_back(test.name);
  return names;
}

}  // namespace rlx::jinja
