// The builders by name. Their table is generated.
#include "rlx/registry.h"

#include <algorithm>

#include <fmt/ranges.h>

#include "base/named_call.h"
#include "base/names.h"
#include "registry/arguments.h"

namespace rlx {
namespace {

template <class... Ts>
bool holds_any(const CallArgument& argument) {
  return (std::holds_alternative<Ts>(argument) || ...);
}

bool fits(const BuilderParameter& parameter, const CallArgument& argument) {
  using Integers = std::vector<std::int64_t>;
  if (std::holds_alternative<std::monostate>(argument)) return true;
  switch (parameter.kind) {
    case ParameterKind::operand: return holds_any<Value, std::int64_t, double, bool>(argument);
    case ParameterKind::operands: return holds_any<Value, Values>(argument);
    case ParameterKind::boolean: return holds_any<bool>(argument);
    case ParameterKind::integer: return holds_any<std::int64_t>(argument);
    case ParameterKind::number: return holds_any<std::int64_t, double>(argument);
    case ParameterKind::text: return holds_any<std::string>(argument);
    case ParameterKind::word:
      return holds_any<std::string>(argument) &&
             std::find(parameter.words.begin(), parameter.words.end(), std::get<std::string>(argument)) != parameter.words.end();
    case ParameterKind::dtype: return holds_any<DType>(argument);
    case ParameterKind::integers: return holds_any<std::int64_t, Integers>(argument);
    case ParameterKind::numbers: return holds_any<std::int64_t, double, Integers, std::vector<double>>(argument);
    case ParameterKind::size: return holds_any<std::int64_t, Dim>(argument);
    case ParameterKind::sizes: return holds_any<std::int64_t, Dim, Integers, Dims>(argument);
    case ParameterKind::function: return holds_any<GroupFunction>(argument);
    case ParameterKind::functions: return holds_any<std::vector<GroupFunction>>(argument);
  }
  return false;
}

std::string seen(const CallArgument& argument) {
  static constexpr std::string_view kinds[] = {"nothing", "a bool", "an integer", "a number", "a text", "an element type", "integers",
                                               "numbers", "a size", "sizes",      "an array", "arrays", "a function",      "functions"};
  static_assert(std::size(kinds) == std::variant_size_v<CallArgument>);
  if (const auto* text = std::get_if<std::string>(&argument)) return fmt::format("'{}'", *text);
  return std::string(kinds[argument.index()]);
}

std::string allowed(const BuilderParameter& parameter) {
  if (parameter.words.empty()) return std::string(name_of(parameter.kind));
  return fmt::format("{}", fmt::join(parameter.words, ", "));
}

std::string parameter_names(const Builder& builder) {
  std::vector<std::string_view> names;
  for (const BuilderParameter& parameter : builder.parameters) names.push_back(parameter.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

/// One argument for each parameter; the text says what is wrong, or is empty.
std::string arrange(const Builder& builder, const std::vector<CallArgument>& arguments, const std::map<std::string, CallArgument>& named,
                    std::vector<CallArgument>& items) {
  const auto& parameters = builder.parameters;
  if (arguments.size() > parameters.size())
    return fmt::format("{} arguments (allowed: at most {}: {})", arguments.size(), parameters.size(), parameter_names(builder));
  items = arguments;
  items.resize(parameters.size());
  for (const auto& [name, argument] : named) {
    const auto it = std::find_if(parameters.begin(), parameters.end(), [&](const BuilderParameter& p) { return p.name == name; });
    if (it == parameters.end()) return fmt::format("no argument '{}' (allowed: {})", name, parameter_names(builder));
    const auto i = static_cast<std::size_t>(it - parameters.begin());
    if (i < arguments.size()) return fmt::format("argument '{}' is given twice", name);
    items[i] = argument;
  }
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (parameters[i].required && std::holds_alternative<std::monostate>(items[i]))
      return fmt::format("argument '{}' is missing (allowed: {})", parameters[i].name, allowed(parameters[i]));
    if (!fits(parameters[i], items[i]))
      return fmt::format("argument '{}' is {} (allowed: {})", parameters[i].name, seen(items[i]), allowed(parameters[i]));
  }
  return "";
}

}  // namespace

std::string_view name_of(ParameterKind kind) {
  static constexpr std::string_view names[] = {"an array", "arrays", "a bool",          "an integer", "a number",
                                               "a text",   "a word", "an element type", "integers",   "numbers",
                                               "a size",   "sizes",  "a function",      "functions"};
  return names[static_cast<std::size_t>(kind)];
}

bool Builder::makes(std::string_view op) const {
  for (std::string_view rest = ops; !rest.empty();) {
    const auto end = std::min(rest.find(' '), rest.size());
    if (rest.substr(0, end) == op) return true;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return false;
}

std::vector<const Builder*> builders_of(std::string_view name) {
  static const auto by_name = [] {
    std::multimap<std::string_view, const Builder*> map;
    for (const Builder& builder : builders()) map.emplace(builder.name, &builder);
    return map;
  }();
  std::vector<const Builder*> found;
  for (auto [it, end] = by_name.equal_range(name); it != end; ++it) found.push_back(it->second);
  return found;
}

Values apply(std::string_view name, const std::vector<CallArgument>& arguments, const std::map<std::string, CallArgument>& named,
             std::source_location at) {
  const NamedCall call(name);
  const Operand place(Value(), at);
  std::string fault;
  for (const Builder* builder : builders_of(name)) {
    std::vector<CallArgument> items;
    std::string wrong = arrange(*builder, arguments, named, items);
    if (wrong.empty() && builder->call) return builder->call(CallArguments(*builder, std::move(items)));
    if (fault.empty()) fault = wrong;
  }
  if (!fault.empty()) fail("rlx.{}: {}", name, fault);
  std::vector<std::string_view> known;
  for (const Builder& builder : builders())
    if (builder.call) known.push_back(builder.name);
  fail("rlx.{}: there is no such function{}", name, near_hint(name, known));
}

CallArguments::CallArguments(const Builder& builder, std::vector<CallArgument> items) : builder_(builder), items_(std::move(items)) {}

Value CallArguments::value(std::size_t i) const {
  if (!given(i)) return {};
  if (const auto* value = std::get_if<Value>(&items_[i])) return *value;
  const auto near =
      std::find_if(items_.begin(), items_.end(), [](const CallArgument& item) { return std::holds_alternative<Value>(item); });
  if (near == items_.end())
    fail("rlx.{}: argument '{}' is a number, and no argument is an array", builder_.name, builder_.parameters[i].name);
  const Value& like = std::get<Value>(*near);
  const double number = std::visit(
      [](const auto& item) {
        if constexpr (std::is_arithmetic_v<std::remove_cvref_t<decltype(item)>>) return static_cast<double>(item);
        else return 0.0;
      },
      items_[i]);
  return scalar(like, number, like.dtype());
}

Values CallArguments::values(std::size_t i) const {
  if (!given(i)) return {};
  if (const auto* value = std::get_if<Value>(&items_[i])) return {*value};
  return std::get<Values>(items_[i]);
}

std::size_t CallArguments::word(std::size_t i) const {
  const auto& words = builder_.parameters[i].words;
  return static_cast<std::size_t>(std::find(words.begin(), words.end(), std::get<std::string>(items_[i])) - words.begin());
}

void CallArguments::read(std::size_t i, int& to) const {
  if (!std::in_range<int>(integer(i)))
    fail("rlx.{}: argument '{}' is {} (allowed: 32 bits)", builder_.name, builder_.parameters[i].name, integer(i));
  to = static_cast<int>(integer(i));
}

void CallArguments::read(std::size_t i, double& to) const {
  const auto* number = std::get_if<double>(&items_[i]);
  to = number ? *number : static_cast<double>(integer(i));
}

void CallArguments::read(std::size_t i, std::vector<std::int64_t>& to) const {
  const auto* list = std::get_if<std::vector<std::int64_t>>(&items_[i]);
  to = list ? *list : std::vector{integer(i)};
}

void CallArguments::read(std::size_t i, std::vector<double>& to) const {
  if (const auto* list = std::get_if<std::vector<double>>(&items_[i])) return void(to = *list);
  if (const auto* number = std::get_if<double>(&items_[i])) return void(to = {*number});
  std::vector<std::int64_t> integers;
  read(i, integers);
  to.assign(integers.begin(), integers.end());
}

void CallArguments::read(std::size_t i, Dim& to) const {
  const auto* size = std::get_if<Dim>(&items_[i]);
  to = size ? *size : Dim(integer(i));
}

void CallArguments::read(std::size_t i, Dims& to) const {
  if (const auto* list = std::get_if<Dims>(&items_[i])) return void(to = *list);
  if (const auto* size = std::get_if<Dim>(&items_[i])) return void(to = {*size});
  std::vector<std::int64_t> integers;
  read(i, integers);
  to.assign(integers.begin(), integers.end());
}

}  // namespace rlx
