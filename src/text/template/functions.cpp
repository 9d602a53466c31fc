#include "text/template/functions.h"

#include <algorithm>
#include <array>
#include <ctime>

#include <fmt/ranges.h>

#include "base/names.h"
#include "text/template/python_operations.h"
#include "text/template/python_text.h"
#include "text/template/renderer.h"

namespace rlx::jinja {
namespace {

std::vector<std::string_view> words(std::string_view text) {
  std::vector<std::string_view> out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    out.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

const Function* find_in(std::span<const Function> table, std::string_view name) {
  const auto found = std::find_if(table.begin(), table.end(), [&](const Function& function) { return function.name == name; });
  return found == table.end() ? nullptr : &*found;
}

const Value& given(const Bound& arguments, std::size_t index) { return *arguments[index]; }

// Methods of dicts, lists and tuples. The table has no method that changes one.

const Dict& dict_of(const Bound& arguments) { return *given(arguments, 0).as<Dict*>(); }

Value view(Renderer& run, std::string_view title, std::vector<Value> items) {
  return run.memory().sequence(Sequence::Kind::view, std::move(items), title);
}

Value dict_items(Renderer& run, const Bound& arguments) {
  std::vector<Value> items;
  for (const auto& [key, value] : dict_of(arguments).entries) items.push_back(run.tuple({key, value}));
  return view(run, "dict_items", std::move(items));
}

Value dict_keys(Renderer& run, const Bound& arguments) { return view(run, "dict_keys", items_of(run, given(arguments, 0))); }

Value dict_values(Renderer& run, const Bound& arguments) {
  std::vector<Value> items;
  for (const auto& [key, value] : dict_of(arguments).entries) items.push_back(value);
  return view(run, "dict_values", std::move(items));
}

Value dict_get(Renderer& run, const Bound& arguments) {
  const Value* found = find(run, dict_of(arguments), given(arguments, 1));
  return found ? *found : arguments[2].value_or(None{});
}

Value same(Renderer& /*run*/, const Bound& arguments) { return given(arguments, 0); }

Value sequence_index(Renderer& run, const Bound& arguments) {
  const std::vector<Value>& items = given(arguments, 0).as<Sequence*>()->items;
  for (std::size_t i = 0; i < items.size(); ++i)
    if (equal(run, items[i], given(arguments, 1))) return Integer{static_cast<std::int64_t>(i)};
  run.refuse("index: the value is not in the {}", type_name(given(arguments, 0)));
}

Value sequence_count(Renderer& run, const Bound& arguments) {
  const std::vector<Value>& items = given(arguments, 0).as<Sequence*>()->items;
  const auto count = std::count_if(items.begin(), items.end(), [&](const Value& item) { return equal(run, item, given(arguments, 1)); });
  return Integer{count};
}

constexpr std::array<Function, 5> dict_methods = {{
    {"items", "self", 1, dict_items},
    {"keys", "self", 1, dict_keys},
    {"values", "self", 1, dict_values},
    {"get", "self key default", 2, dict_get},
    {"copy", "self", 1, same},
}};

constexpr std::array<Function, 3> sequence_methods = {{
    {"index", "self value", 2, sequence_index},
    {"count", "self value", 2, sequence_count},
    {"copy", "self", 1, same},
}};

// Global functions.

Value make_range(Renderer& run, const Bound& arguments) {
  const auto bound = [&](std::size_t i) { return as_index(run, given(arguments, i), "an argument of range"); };
  const std::ptrdiff_t begin = arguments[1] ? bound(0) : 0, end = arguments[1] ? bound(1) : bound(0), step = arguments[2] ? bound(2) : 1;
  if (step == 0) run.refuse("range: the step is 0");
  constexpr std::ptrdiff_t longest = 100'000;  // as in Jinja's sandbox
  const std::ptrdiff_t span = step < 0 ? begin - end : end - begin;
  const std::ptrdiff_t count = span <= 0 ? 0 : (span - 1) / (step < 0 ? -step : step) + 1;
  if (count > longest) run.refuse("range: {} numbers (at most {} are allowed)", count, longest);
  std::vector<Value> items;
  for (std::ptrdiff_t i = 0; i < count; ++i) items.emplace_back(Integer{begin + i * step});
  const std::string title = step == 1 ? fmt::format("range({}, {})", begin, end) : fmt::format("range({}, {}, {})", begin, end, step);
  return run.memory().sequence(Sequence::Kind::range, std::move(items), run.memory().keep(title));
}

/// A dict of pairs, or of another dict, and of named arguments.
Dict* make_entries(Renderer& run, std::string_view function, const Bound& arguments) {
  Dict* dict = run.memory().dict();
  const std::vector<Value>& positional = given(arguments, 0).as<Sequence*>()->items;
  if (positional.size() > 1) run.refuse("{} takes at most one positional argument", function);
  if (!positional.empty() && positional[0].is<Dict*>()) {
    for (const auto& [key, value] : positional[0].as<Dict*>()->entries) insert(run, *dict, key, value);
  } else if (!positional.empty()) {
    for (const Value& item : items_of(run, positional[0])) {
      const std::vector<Value> pair = items_of(run, item);
      if (pair.size() != 2) run.refuse("{}: an entry of {} values (allowed: a key and a value)", function, pair.size());
      insert(run, *dict, pair[0], pair[1]);
    }
  }
  for (const auto& [name, value] : given(arguments, 1).as<Dict*>()->entries) insert(run, *dict, name, value);
  return dict;
}

Value make_dict(Renderer& run, const Bound& arguments) { return make_entries(run, "dict", arguments); }

Value make_namespace(Renderer& run, const Bound& arguments) {
  Dict* values = make_entries(run, "namespace", arguments);
  for (const auto& [key, value] : values->entries)
    if (key.is<std::string_view>() && key.as<std::string_view>().starts_with('_'))
      run.refuse("an attribute of a namespace may not begin with '_' (seen: {})", quote_name(key.as<std::string_view>()));
  return run.memory().object<Namespace>(values);
}

Value raise_exception(Renderer& run, const Bound& arguments) { run.refuse("the template refuses: {}", text_of(run, given(arguments, 0))); }

/// strftime of C, with Python's %f (microseconds) and its empty zone.
Value strftime_now(Renderer& run, const Bound& arguments) {
  if (!given(arguments, 0).is<std::string_view>())
    run.refuse("strftime_now: the format is a value of type {} (allowed: str)", type_name(given(arguments, 0)));
  std::string format;
  const std::string_view text = given(arguments, 0).as<std::string_view>();
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char code = text[i] == '%' && i + 1 < text.size() ? text[i + 1] : '\0';
    if (code == '\0') {
      format += text[i];
      continue;
    }
    if (code == 'f') format += "000000";
    else if (code != 'z' && code != 'Z') format += text.substr(i, 2);
    ++i;
  }
  if (format.empty()) return std::string_view();
  constexpr std::size_t longest = 1 << 16;
  std::string out(std::min(longest, 256 + format.size() * 16), '\0');
  out.resize(std::strftime(out.data(), out.size(), format.c_str(), &run.now()));
  return run.string(std::move(out));
}

/// Goes through its values, from one call of next() to the next.
class Cycler : public Object {
 public:
  explicit Cycler(std::vector<Value> values) : values_(std::move(values)) {}
  std::string_view type_name() const override { return "cycler"; }
  std::optional<Value> attribute(Renderer& run, std::string_view name) const override;
  const Value& current() const { return values_[at_ % values_.size()]; }
  Value next() { return values_[at_++ % values_.size()]; }
  void reset() { at_ = 0; }

 private:
  std::vector<Value> values_;
  std::size_t at_ = 0;
};

Cycler& cycler_of(const Bound& arguments) { return static_cast<Cycler&>(*given(arguments, 0).as<Object*>()); }
Value cycler_next(Renderer& /*run*/, const Bound& arguments) { return cycler_of(arguments).next(); }
Value cycler_reset(Renderer& /*run*/, const Bound& arguments) { return cycler_of(arguments).reset(), None{}; }

constexpr std::array<Function, 2> cycler_methods = {{{"next", "self", 1, cycler_next}, {"reset", "self", 1, cycler_reset}}};

std::optional<Value> Cycler::attribute(Renderer& run, std::string_view name) const {
  if (name == "current") return current();
  const Function* method = find_in(cycler_methods, name);
  if (!method) return std::nullopt;
  return run.memory().object<Callable>(*method, Value(const_cast<Cycler*>(this)));
}

Value make_cycler(Renderer& run, const Bound& arguments) {
  const std::vector<Value>& values = given(arguments, 0).as<Sequence*>()->items;
  if (values.empty() || !given(arguments, 1).as<Dict*>()->entries.empty()) run.refuse("cycler needs values, without names");
  return run.memory().object<Cycler>(values);
}

/// Empty the first time it is called, then a separator.
class Joiner : public Object {
 public:
  explicit Joiner(std::string_view separator) : separator_(separator) {}
  std::string_view type_name() const override { return "joiner"; }
  bool callable() const override { return true; }
  Value call(Renderer& /*run*/, const Arguments& /*arguments*/) const override {
    return std::exchange(used_, true) ? separator_ : std::string_view();
  }

 private:
  std::string_view separator_;
  mutable bool used_ = false;
};

Value make_joiner(Renderer& run, const Bound& arguments) {
  return run.memory().object<Joiner>(arguments[0] ? text_of(run, *arguments[0]) : std::string_view(", "));
}

constexpr std::array<Function, 7> globals = {{
    {"range", "start stop step", 1, make_range},
    {"dict", "*", 0, make_dict},
    {"namespace", "*", 0, make_namespace},
    {"raise_exception", "message", 1, raise_exception},
    {"strftime_now", "format", 1, strftime_now},
    {"cycler", "*", 0, make_cycler},
    {"joiner", "sep", 0, make_joiner},
}};

/// Puts named arguments at the places of their parameters, and the rest into `others`.
void bind_named(Renderer& run, const Function& function, const Arguments& arguments, std::span<const std::string_view> parameters,
                bool open, Bound& bound, Dict* others) {
  for (const auto& [name, value] : arguments.named) {
    const auto found = std::find(parameters.begin(), parameters.end(), name);
    const auto index = static_cast<std::size_t>(found - parameters.begin());
    if (found != parameters.end() && !bound[index]) bound[index] = value;
    else if (found != parameters.end()) run.refuse("{}: argument {} is given twice", function.name, quote_name(name));
    else if (open) insert(run, *others, name, value);
    else run.refuse("{} has no parameter {} (allowed: {})", function.name, quote_name(name), fmt::join(parameters, ", "));
  }
}

}  // namespace

Value call_function(Renderer& run, const Function& function, const Arguments& arguments) {
  std::vector<std::string_view> parameters = words(function.parameters);
  const bool open = !parameters.empty() && parameters.back() == "*";
  if (open) parameters.pop_back();
  Bound bound(parameters.size());
  std::vector<Value> rest;
  for (std::size_t i = 0; i < arguments.positional.size(); ++i) {
    if (i < parameters.size()) bound[i] = arguments.positional[i];
    else rest.push_back(arguments.positional[i]);
  }
  if (!open && !rest.empty())
    run.refuse("{} takes at most {} arguments ({} given)", function.name, parameters.size(), arguments.positional.size());
  Dict* others = open ? run.memory().dict() : nullptr;
  bind_named(run, function, arguments, parameters, open, bound, others);
  for (std::size_t i = 0; i < function.required; ++i)
    if (!bound[i]) run.refuse("{} needs the argument {}", function.name, quote_name(parameters[i]));
  if (open) bound.emplace_back(run.tuple(std::move(rest))), bound.emplace_back(others);
  return function.call(run, bound);
}

Value Callable::call(Renderer& run, const Arguments& arguments) const {
  if (!self_) return call_function(run, function_, arguments);
  Arguments all = arguments;
  all.positional.insert(all.positional.begin(), *self_);
  return call_function(run, function_, all);
}

const Function* find_filter(std::string_view name) {
  const Function* found = find_in(text_filters(), name);
  return found ? found : find_in(sequence_filters(), name);
}

const Function* find_method(const Value& object, std::string_view name) {
  if (object.is<std::string_view>()) return find_in(string_methods(), name);
  if (object.is<Dict*>()) return find_in(dict_methods, name);
  if (object.is<Sequence*>() && object.as<Sequence*>()->kind <= Sequence::Kind::range) return find_in(sequence_methods, name);
  return nullptr;
}

const Function* find_global(std::string_view name) { return find_in(globals, name); }

std::vector<std::string_view> filter_names() {
  std::vector<std::string_view> names;
  for (const auto table : {text_filters(), sequence_filters()})
    for (const Function& function : table) names.push_back(function.name);
  return names;
}

}  // namespace rlx::jinja
