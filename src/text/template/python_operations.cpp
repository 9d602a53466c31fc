#include "text/template/python_operations.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "base/names.h"
#include "text/template/functions.h"
#include "text/template/python_text.h"
#include "text/template/renderer.h"
#include "text/unicode/unicode.h"

namespace rlx::jinja {
namespace {

constexpr std::size_t entry_bytes = 2 * sizeof(Value) + 64;  // with its place in the index

[[noreturn]] void refuse_undefined(Renderer& run, const Value& value) { run.refuse("{}", value.as<Undefined>().why); }

std::size_t code_points(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

/// Where the code point number `index` begins, or the end.
std::size_t byte_of(std::string_view text, std::size_t index) {
  std::size_t at = 0;
  for (; index > 0 && at < text.size(); --index) at += unicode::decode(text.substr(at)).bytes;
  return at;
}

std::vector<Value> characters(std::string_view text) {
  std::vector<Value> out;
  while (!text.empty()) {
    const std::size_t bytes = unicode::decode(text).bytes;
    out.emplace_back(text.substr(0, bytes));
    text.remove_prefix(bytes);
  }
  return out;
}

bool is_indexed(Sequence::Kind kind) { return kind <= Sequence::Kind::range; }

bool equal_dicts(Renderer& run, const Dict& a, const Dict& b) {
  if (a.entries.size() != b.entries.size()) return false;
  return std::all_of(a.entries.begin(), a.entries.end(), [&](const auto& entry) {
    const Value* other = find(run, b, entry.first);
    return other && equal(run, entry.second, *other);
  });
}

bool equal_sequences(Renderer& run, const Sequence& a, const Sequence& b) {
  if (&a == &b) return true;
  if (a.kind != b.kind || a.kind >= Sequence::Kind::view) return false;
  return std::equal(a.items.begin(), a.items.end(), b.items.begin(), b.items.end(),
                    [&](const Value& left, const Value& right) { return equal(run, left, right); });
}

/// The element that `index` of Python means, counted from the end when it is negative.
std::optional<std::size_t> position(std::ptrdiff_t index, std::size_t size) {
  const auto count = static_cast<std::ptrdiff_t>(size);
  if (index < -count || index >= count) return std::nullopt;
  return static_cast<std::size_t>(index < 0 ? index + count : index);
}

std::optional<Value> element(Renderer& run, const Value& value, const Value& key) {
  if (value.is<Dict*>()) {
    const Value* found = find(run, *value.as<Dict*>(), key);
    return found ? std::optional(*found) : std::nullopt;
  }
  const bool indexed = value.is<std::string_view>() || (value.is<Sequence*>() && is_indexed(value.as<Sequence*>()->kind));
  if (!indexed || !as_integer(key)) return std::nullopt;
  const auto at = position(as_index(run, key, "an index"), *length_of(run, value));
  if (!at) return std::nullopt;
  if (value.is<Sequence*>()) return value.as<Sequence*>()->items[*at];
  const std::string_view text = value.as<std::string_view>();
  const std::size_t begin = byte_of(text, *at);
  return text.substr(begin, unicode::decode(text.substr(begin)).bytes);
}

/// What Python's getattr gives, without what the sandbox hides.
std::optional<Value> plain_attribute(Renderer& run, const Value& value, std::string_view name) {
  if (value.is<Object*>()) return value.as<Object*>()->attribute(run, name);
  if (const Function* method = find_method(value, name)) return run.memory().object<Callable>(*method, value);
  return std::nullopt;
}

/// Methods that would change a list or dict, and names of Python's own: the sandbox has them, but they cannot be used.
bool is_hidden(const Value& value, std::string_view name) {
  constexpr std::array<std::string_view, 12> changing = {"append", "clear",  "pop",     "reverse",    "insert", "sort",
                                                         "extend", "remove", "popitem", "setdefault", "update", "copy"};
  if (name.starts_with("__")) return true;
  const bool changeable = value.is<Dict*>() || (value.is<Sequence*>() && value.as<Sequence*>()->kind == Sequence::Kind::list);
  return changeable && std::find(changing.begin(), changing.end() - 1, name) != changing.end() - 1;
}

Value missing(Renderer& run, const Value& value, const Value& key) {
  const std::string shown = key.is<std::string_view>() ? fmt::format("attribute {}", quote_name(key.as<std::string_view>()))
                                                       : fmt::format("element {}", quote_name(repr(run, key)));
  return run.undefined(fmt::format("a value of type {} has no {}", type_name(value), shown));
}

struct SliceRange {
  std::ptrdiff_t begin, step;
  std::size_t count;
};

SliceRange slice_range(Renderer& run, std::size_t size, const Value& begin, const Value& end, const Value& step) {
  const auto count = static_cast<std::ptrdiff_t>(size);
  const std::ptrdiff_t by = step.is<None>() ? 1 : as_index(run, step, "a slice's step");
  if (by == 0) run.refuse("a slice's step is 0");
  const auto bound = [&](const Value& given, std::ptrdiff_t initial) {
    if (given.is<None>()) return initial;
    std::ptrdiff_t at = as_index(run, given, "a slice's bound");
    if (at < 0) at = at < -count ? (by < 0 ? -1 : 0) : at + count;
    return std::min(at, by < 0 ? count - 1 : count);
  };
  const std::ptrdiff_t first = bound(begin, by < 0 ? count - 1 : 0), last = bound(end, by < 0 ? -1 : count);
  const std::ptrdiff_t span = by < 0 ? first - last : last - first;
  if (span <= 0) return {first, by, 0};
  const std::size_t stride = by < 0 ? std::size_t{0} - static_cast<std::size_t>(by) : static_cast<std::size_t>(by);
  return {first, by, (static_cast<std::size_t>(span) - 1) / stride + 1};
}

}  // namespace

std::string_view type_name(const Value& value) {
  constexpr std::array<std::string_view, 7> names = {"Undefined", "NoneType", "bool", "int", "float", "str", ""};
  if (value.is<Dict*>()) return "dict";
  if (value.is<Object*>()) return value.as<Object*>()->type_name();
  if (!value.is<Sequence*>()) return names[value.index()];
  constexpr std::array<std::string_view, 5> sequences = {"list", "tuple", "range", "dict view", "iterator"};
  return sequences[static_cast<std::size_t>(value.as<Sequence*>()->kind)];
}

bool truth(const Value& value) {
  if (value.is<Undefined>() || value.is<None>()) return false;
  if (value.is<bool>()) return value.as<bool>();
  if (value.is<Integer>()) return value.as<Integer>() != 0;
  if (value.is<double>()) return value.as<double>() != 0;
  if (value.is<std::string_view>()) return !value.as<std::string_view>().empty();
  if (value.is<Dict*>()) return !value.as<Dict*>()->entries.empty();
  if (!value.is<Sequence*>()) return true;
  const Sequence& sequence = *value.as<Sequence*>();
  return sequence.kind == Sequence::Kind::iterator || !sequence.items.empty();
}

std::optional<Integer> as_integer(const Value& value) {
  if (value.is<bool>()) return Integer{value.as<bool>()};
  if (value.is<Integer>()) return value.as<Integer>();
  return std::nullopt;
}

double as_float(const Value& number) { return number.is<double>() ? number.as<double>() : static_cast<double>(*as_integer(number)); }

std::ptrdiff_t as_index(Renderer& run, const Value& value, std::string_view what) {
  if (value.is<Undefined>()) refuse_undefined(run, value);
  const auto integer = as_integer(value);
  if (!integer) run.refuse("{} is a value of type {} (allowed: int)", what, type_name(value));
  constexpr Integer limit = Integer{1} << 48;  // of no list; far from where sums overflow
  return static_cast<std::ptrdiff_t>(std::clamp(*integer, -limit, limit));
}

bool equal(Renderer& run, const Value& a, const Value& b) {
  const Renderer::Level level(run);
  run.count_steps(1);
  if (a.is_number() && b.is_number()) {
    const auto left = as_integer(a), right = as_integer(b);
    if (left && right) return *left == *right;
    return as_float(a) == as_float(b);
  }
  if (a.index() != b.index()) return false;
  if (a.is<std::string_view>())
    return run.count_scan(a.as<std::string_view>().size()), a.as<std::string_view>() == b.as<std::string_view>();
  if (a.is<Sequence*>()) return equal_sequences(run, *a.as<Sequence*>(), *b.as<Sequence*>());
  if (a.is<Dict*>()) return equal_dicts(run, *a.as<Dict*>(), *b.as<Dict*>());
  if (a.is<Object*>()) return a.as<Object*>() == b.as<Object*>();
  return true;  // none, undefined
}

bool less(Renderer& run, const Value& a, const Value& b) {
  const Renderer::Level level(run);
  run.count_steps(1);
  for (const Value& value : {a, b})
    if (value.is<Undefined>()) refuse_undefined(run, value);
  if (a.is_number() && b.is_number()) {
    const auto left = as_integer(a), right = as_integer(b);
    return left && right ? *left < *right : as_float(a) < as_float(b);
  }
  if (a.is<std::string_view>() && b.is<std::string_view>()) return a.as<std::string_view>() < b.as<std::string_view>();
  const auto is_ordered = [](const Value& value) { return value.is<Sequence*>() && value.as<Sequence*>()->kind <= Sequence::Kind::tuple; };
  if (!is_ordered(a) || !is_ordered(b) || a.as<Sequence*>()->kind != b.as<Sequence*>()->kind)
    run.refuse("values of types {} and {} have no order", type_name(a), type_name(b));
  const std::vector<Value>&left = a.as<Sequence*>()->items, &right = b.as<Sequence*>()->items;
  for (std::size_t i = 0; i < std::min(left.size(), right.size()); ++i)
    if (!equal(run, left[i], right[i])) return less(run, left[i], right[i]);
  return left.size() < right.size();
}

bool contains(Renderer& run, const Value& container, const Value& item) {
  if (container.is<std::string_view>()) {
    if (item.is<Undefined>()) refuse_undefined(run, item);
    if (!item.is<std::string_view>()) run.refuse("a value of type {} is sought in a string (allowed: str)", type_name(item));
    run.count_scan(container.as<std::string_view>().size());
    return container.as<std::string_view>().find(item.as<std::string_view>()) != std::string_view::npos;
  }
  if (container.is<Dict*>()) return find(run, *container.as<Dict*>(), item) != nullptr;
  const std::vector<Value> items = items_of(run, container);
  return std::any_of(items.begin(), items.end(), [&](const Value& other) { return equal(run, other, item); });
}

const Value* find(Renderer& run, const Dict& dict, const Value& key) {
  if (key.is<std::string_view>()) {
    const auto found = dict.by_name.find(key.as<std::string_view>());
    return found == dict.by_name.end() ? nullptr : &dict.entries[found->second].second;
  }
  if (dict.by_name.size() == dict.entries.size()) return nullptr;
  const auto found =
      std::find_if(dict.entries.begin(), dict.entries.end(), [&](const auto& entry) { return equal(run, entry.first, key); });
  return found == dict.entries.end() ? nullptr : &found->second;
}

void insert(Renderer& run, Dict& dict, const Value& key, const Value& value) {
  const bool changeable = key.is<Dict*>() || (key.is<Sequence*>() && key.as<Sequence*>()->kind == Sequence::Kind::list);
  if (key.is<Undefined>()) refuse_undefined(run, key);
  if (changeable) run.refuse("a {} cannot be the key of a dict", type_name(key));
  if (const Value* found = find(run, dict, key)) {
    *const_cast<Value*>(found) = value;  // of `dict`, which is ours to change
    return;
  }
  run.memory().charge(entry_bytes);
  if (key.is<std::string_view>()) dict.by_name.emplace(key.as<std::string_view>(), dict.entries.size());
  dict.entries.emplace_back(key, value);
}

std::optional<std::size_t> length_of(Renderer& run, const Value& value) {
  if (value.is<Undefined>()) return 0;
  if (value.is<std::string_view>()) return run.count_scan(value.as<std::string_view>().size()), code_points(value.as<std::string_view>());
  if (value.is<Dict*>()) return value.as<Dict*>()->entries.size();
  if (value.is<Sequence*>() && value.as<Sequence*>()->kind != Sequence::Kind::iterator) return value.as<Sequence*>()->items.size();
  return std::nullopt;
}

std::vector<Value> items_of(Renderer& run, const Value& value) {
  if (value.is<Undefined>()) return {};
  if (value.is<std::string_view>()) {
    run.memory().charge(value.as<std::string_view>().size() * sizeof(Value));
    return characters(value.as<std::string_view>());
  }
  std::vector<Value> items;
  if (value.is<Dict*>()) {
    for (const auto& [key, element] : value.as<Dict*>()->entries) items.push_back(key);
  } else if (value.is<Sequence*>()) {
    Sequence& sequence = *value.as<Sequence*>();
    const auto begin = sequence.items.begin() + static_cast<std::ptrdiff_t>(sequence.taken);
    items.assign(begin, sequence.items.end());
    if (sequence.kind == Sequence::Kind::iterator) sequence.taken = sequence.items.size();
  } else {
    run.refuse("a value of type {} cannot be iterated over", type_name(value));
  }
  run.count_scan(items.size());
  run.memory().charge(items.size() * sizeof(Value));
  return items;
}

Value attribute_of(Renderer& run, const Value& value, std::string_view name) {
  if (value.is<Undefined>()) refuse_undefined(run, value);
  if (is_hidden(value, name)) return run.undefined(fmt::format("{} of a {} may not be used", quote_name(name), type_name(value)));
  if (const auto found = plain_attribute(run, value, name)) return *found;
  if (const auto found = element(run, value, name)) return *found;
  return missing(run, value, name);
}

Value item_of(Renderer& run, const Value& value, const Value& key) {
  if (value.is<Undefined>()) refuse_undefined(run, value);
  if (const auto found = element(run, value, key)) return *found;
  if (key.is<std::string_view>()) {
    if (is_hidden(value, key.as<std::string_view>())) return attribute_of(run, value, key.as<std::string_view>());
    if (const auto found = plain_attribute(run, value, key.as<std::string_view>())) return *found;
  }
  return missing(run, value, key);
}

Value slice_of(Renderer& run, const Value& value, const Value& begin, const Value& end, const Value& step) {
  if (value.is<Undefined>()) refuse_undefined(run, value);
  const bool text = value.is<std::string_view>();
  if (!text && !(value.is<Sequence*>() && is_indexed(value.as<Sequence*>()->kind))) return missing(run, value, std::string_view("slice"));
  const SliceRange range = slice_range(run, *length_of(run, value), begin, end, step);
  if (text && range.step == 1) {
    const std::string_view all = value.as<std::string_view>();
    const std::size_t first = byte_of(all, static_cast<std::size_t>(range.begin));
    return all.substr(first, byte_of(all.substr(first), range.count));
  }
  const std::vector<Value> items = text ? items_of(run, value) : std::vector<Value>();
  const std::vector<Value>& from = text ? items : value.as<Sequence*>()->items;
  std::vector<Value> taken;
  for (std::size_t i = 0; i < range.count; ++i)
    taken.push_back(from[static_cast<std::size_t>(range.begin + static_cast<std::ptrdiff_t>(i) * range.step)]);
  const bool is_tuple = !text && value.as<Sequence*>()->kind == Sequence::Kind::tuple;
  if (!text) return run.memory().sequence(is_tuple ? Sequence::Kind::tuple : Sequence::Kind::list, std::move(taken));
  std::string joined;
  for (const Value& character : taken) joined += character.as<std::string_view>();
  return run.string(std::move(joined));
}

}  // namespace rlx::jinja
