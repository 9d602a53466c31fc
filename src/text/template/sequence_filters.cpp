#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "text/template/functions.h"
#include "text/template/python_operations.h"
#include "text/template/python_text.h"
#include "text/template/renderer.h"

namespace rlx::jinja {
namespace {

using Key = std::function<Value(const Value&)>;

std::vector<std::string_view> split_at(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t at; (at = text.find(separator)) != std::string_view::npos; text.remove_prefix(at + 1))
    parts.push_back(text.substr(0, at));
  parts.push_back(text);
  return parts;
}

/// The value at a path such as "function.name" or "0.text".
Value value_at(Renderer& run, Value value, std::string_view path, const std::optional<Value>& initial) {
  for (std::string_view part : split_at(path, '.')) {
    const bool number = !part.empty() && part.find_first_not_of("0123456789") == std::string_view::npos;
    value = item_of(run, value, number ? Value(*parse_integer(run, part, 10)) : Value(part));
    if (value.is<Undefined>() && is_given(initial)) value = *initial;
  }
  return value;
}

/// What `attribute` of an item is, or the item itself without one.
Key attribute_key(Renderer& run, const std::optional<Value>& attribute, std::optional<Value> initial = std::nullopt) {
  if (!is_given(attribute)) return [](const Value& item) { return item; };
  if (attribute->is<std::string_view>())
    return [&run, path = attribute->as<std::string_view>(), initial](const Value& item) { return value_at(run, item, path, initial); };
  return [&run, key = *attribute, initial](const Value& item) {
    const Value found = item_of(run, item, key);
    return found.is<Undefined>() && is_given(initial) ? *initial : found;
  };
}

/// With strings in lower case unless case counts.
Key caseless(Renderer& run, Key key, bool case_counts) {
  if (case_counts) return key;
  return [&run, key = std::move(key)](const Value& item) {
    const Value value = key(item);
    return value.is<std::string_view>() ? run.string(lower(value.as<std::string_view>())) : value;
  };
}

bool given_true(const Bound& arguments, std::size_t index) { return arguments[index] && truth(*arguments[index]); }

/// The items in the order of their keys; equal ones keep theirs.
std::vector<Value> sorted_by(Renderer& run, const std::vector<Value>& items, const Key& key, bool descending) {
  std::vector<std::pair<Value, Value>> keyed;
  for (const Value& item : items) keyed.emplace_back(key(item), item);
  run.memory().charge(keyed.size() * 2 * sizeof(keyed[0]));
  std::stable_sort(keyed.begin(), keyed.end(),
                   [&](const auto& a, const auto& b) { return descending ? less(run, b.first, a.first) : less(run, a.first, b.first); });
  std::vector<Value> sorted;
  std::transform(keyed.begin(), keyed.end(), std::back_inserter(sorted), [](const auto& pair) { return pair.second; });
  return sorted;
}

Value sort_filter(Renderer& run, const Bound& arguments) {
  const bool case_counts = given_true(arguments, 2);
  Key key = caseless(run, attribute_key(run, arguments[3]), case_counts);
  if (arguments[3] && arguments[3]->is<std::string_view>() && arguments[3]->as<std::string_view>().find(',') != std::string_view::npos) {
    std::vector<Key> keys;
    for (std::string_view path : split_at(arguments[3]->as<std::string_view>(), ','))
      keys.push_back(caseless(run, attribute_key(run, Value(path)), case_counts));
    key = [&run, keys](const Value& item) {
      std::vector<Value> values;
      for (const Key& part : keys) values.push_back(part(item));
      return run.list(std::move(values));
    };
  }
  return run.list(sorted_by(run, items_of(run, *arguments[0]), key, given_true(arguments, 1)));
}

Value dictsort_filter(Renderer& run, const Bound& arguments) {
  if (!arguments[0]->is<Dict*>()) run.refuse("'dictsort' is not defined for a value of type {}", type_name(*arguments[0]));
  const std::string_view by = arguments[2] ? text_of(run, *arguments[2]) : "key";
  if (by != "key" && by != "value") run.refuse("dictsort: by is '{}' (allowed: key, value)", by);
  std::vector<Value> pairs;
  for (const auto& [key, value] : arguments[0]->as<Dict*>()->entries) pairs.push_back(run.tuple({key, value}));
  const std::size_t part = by == "key" ? 0 : 1;
  const Key key = caseless(run, [part](const Value& pair) { return pair.as<Sequence*>()->items[part]; }, given_true(arguments, 1));
  return run.list(sorted_by(run, pairs, key, given_true(arguments, 3)));
}

Value unique_filter(Renderer& run, const Bound& arguments) {
  const Key key = caseless(run, attribute_key(run, arguments[2]), given_true(arguments, 1));
  std::vector<Value> seen, items;
  for (const Value& item : items_of(run, *arguments[0])) {
    const Value own = key(item);
    if (std::any_of(seen.begin(), seen.end(), [&](const Value& other) { return equal(run, own, other); })) continue;
    seen.push_back(own);
    items.push_back(item);
  }
  return run.iterator(std::move(items));
}

Value groupby_filter(Renderer& run, const Bound& arguments) {
  const bool case_counts = given_true(arguments, 3);
  const Key plain = attribute_key(run, arguments[1], arguments[2]), key = caseless(run, plain, case_counts);
  std::vector<Value> groups, members;
  Value current;
  const auto flush = [&] {
    if (!members.empty()) groups.push_back(run.tuple({plain(members.front()), run.list(members)}));
    members.clear();
  };
  for (const Value& item : sorted_by(run, items_of(run, *arguments[0]), key, false)) {
    const Value own = key(item);
    if (!members.empty() && !equal(run, own, current)) flush();
    current = own;
    members.push_back(item);
  }
  flush();
  return run.list(std::move(groups));
}

template <bool greatest>
Value extremum_filter(Renderer& run, const Bound& arguments) {
  const std::vector<Value> items = items_of(run, *arguments[0]);
  if (items.empty()) return run.undefined("an empty sequence has no least or greatest item");
  const Key key = caseless(run, attribute_key(run, arguments[2]), given_true(arguments, 1));
  std::size_t best = 0;
  Value best_key = key(items[0]);
  for (std::size_t i = 1; i < items.size(); ++i) {
    const Value own = key(items[i]);
    if (greatest ? less(run, best_key, own) : less(run, own, best_key)) best = i, best_key = own;
  }
  return items[best];
}

Value sum_filter(Renderer& run, const Bound& arguments) {
  const Key key = attribute_key(run, arguments[1]);
  Value sum = arguments[2].value_or(Integer{0});
  for (const Value& item : items_of(run, *arguments[0])) sum = binary(run, "+", sum, key(item));
  return sum;
}

Value join_filter(Renderer& run, const Bound& arguments) {
  const Key key = attribute_key(run, arguments[2]);
  const std::string_view separator = arguments[1] ? text_of(run, *arguments[1]) : "";
  std::string out;
  bool first = true;
  for (const Value& item : items_of(run, *arguments[0])) {
    const std::string_view text = text_of(run, key(item));
    run.memory().charge(separator.size() + text.size());
    if (!std::exchange(first, false)) out += separator;
    out += text;
  }
  return run.string(std::move(out));
}

Value length_filter(Renderer& run, const Bound& arguments) {
  const auto length = length_of(run, *arguments[0]);
  if (!length) run.refuse("a value of type {} has no length", type_name(*arguments[0]));
  return Integer{static_cast<std::int64_t>(*length)};
}

Value list_filter(Renderer& run, const Bound& arguments) { return run.list(items_of(run, *arguments[0])); }

Value first_filter(Renderer& run, const Bound& arguments) {
  if (arguments[0]->is<Sequence*>() && arguments[0]->as<Sequence*>()->kind == Sequence::Kind::iterator) {
    Sequence& sequence = *arguments[0]->as<Sequence*>();
    if (sequence.taken < sequence.items.size()) return sequence.items[sequence.taken++];
  }
  const std::vector<Value> items = items_of(run, *arguments[0]);
  return items.empty() ? run.undefined("an empty sequence has no first item") : items.front();
}

Value last_filter(Renderer& run, const Bound& arguments) {
  if (!length_of(run, *arguments[0]))
    run.refuse("'last' is not defined for a value of type {} (use 'list' first)", type_name(*arguments[0]));
  const std::vector<Value> items = items_of(run, *arguments[0]);
  return items.empty() ? run.undefined("an empty sequence has no last item") : items.back();
}

Value reverse_filter(Renderer& run, const Bound& arguments) {
  if (arguments[0]->is<std::string_view>()) return slice_of(run, *arguments[0], None{}, None{}, Integer{-1});
  std::vector<Value> items = items_of(run, *arguments[0]);
  std::reverse(items.begin(), items.end());
  return run.iterator(std::move(items));
}

Value items_filter(Renderer& run, const Bound& arguments) {
  if (!arguments[0]->is<Dict*>() && !arguments[0]->is<Undefined>())
    run.refuse("'items' is not defined for a value of type {}", type_name(*arguments[0]));
  std::vector<Value> items;
  if (arguments[0]->is<Dict*>())
    for (const auto& [key, value] : arguments[0]->as<Dict*>()->entries) items.push_back(run.tuple({key, value}));
  return run.iterator(std::move(items));
}

std::ptrdiff_t part_count(Renderer& run, const Value& value, std::string_view filter) {
  const std::ptrdiff_t count = as_index(run, value, filter);
  if (count < 1 || count > 1'000'000) run.refuse("{}: {} (allowed: 1..1000000)", filter, count);
  return count;
}

Value batch_filter(Renderer& run, const Bound& arguments) {
  const auto size = static_cast<std::size_t>(part_count(run, *arguments[1], "batch"));
  const std::vector<Value> items = items_of(run, *arguments[0]);
  std::vector<Value> batches;
  for (std::size_t begin = 0; begin < items.size(); begin += size) {
    const std::size_t end = std::min(begin + size, items.size());
    std::vector<Value> batch(items.begin() + static_cast<std::ptrdiff_t>(begin), items.begin() + static_cast<std::ptrdiff_t>(end));
    if (is_given(arguments[2])) batch.resize(size, *arguments[2]);
    batches.push_back(run.list(std::move(batch)));
  }
  return run.iterator(std::move(batches));
}

Value slice_filter(Renderer& run, const Bound& arguments) {
  const auto slices = static_cast<std::size_t>(part_count(run, *arguments[1], "slice"));
  const std::vector<Value> items = items_of(run, *arguments[0]);
  std::vector<Value> out;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < slices; ++i) {
    const bool longer = i < items.size() % slices;
    const std::size_t end = begin + items.size() / slices + (longer ? 1 : 0);
    std::vector<Value> part(items.begin() + static_cast<std::ptrdiff_t>(begin), items.begin() + static_cast<std::ptrdiff_t>(end));
    if (is_given(arguments[2]) && !longer) part.push_back(*arguments[2]);
    out.push_back(run.list(std::move(part)));
    begin = end;
  }
  return run.iterator(std::move(out));
}

Value attr_filter(Renderer& run, const Bound& arguments) {
  const std::string_view name = text_of(run, *arguments[1]);
  if (arguments[0]->is<Dict*>() && !find_method(*arguments[0], name))
    return run.undefined(fmt::format("a dict has no attribute '{}'", name));
  return attribute_of(run, *arguments[0], name);
}

/// The arguments behind those that the filter itself took.
Arguments passed_on(const Bound& arguments, std::size_t taken) {
  Arguments rest;
  const std::vector<Value>& positional = arguments[1]->as<Sequence*>()->items;
  rest.positional.assign(positional.begin() + static_cast<std::ptrdiff_t>(taken), positional.end());
  for (const auto& [key, value] : arguments[2]->as<Dict*>()->entries) rest.named.emplace_back(key.as<std::string_view>(), value);
  return rest;
}

/// Of a false value nothing is asked, not even whether it can be iterated over.
std::vector<Value> items_if_true(Renderer& run, const Bound& arguments) {
  return truth(*arguments[0]) ? items_of(run, *arguments[0]) : std::vector<Value>();
}

Value map_filter(Renderer& run, const Bound& arguments) {
  const std::vector<Value>& positional = arguments[1]->as<Sequence*>()->items;
  const Dict& named = *arguments[2]->as<Dict*>();
  Key change;
  if (const Value* attribute = find(run, named, std::string_view("attribute")); positional.empty() && attribute) {
    const Value* initial = find(run, named, std::string_view("default"));
    if (named.entries.size() != (initial ? 2U : 1U)) run.refuse("map takes a filter, or an attribute and a default");
    change = attribute_key(run, *attribute, initial ? std::optional(*initial) : std::nullopt);
  } else {
    if (positional.empty()) run.refuse("map needs the name of a filter, or an attribute");
    change = [&, name = text_of(run, positional[0]), rest = passed_on(arguments, 1)](const Value& item) {
      return run.apply_filter(name, item, rest);
    };
  }
  std::vector<Value> out;
  for (const Value& item : items_if_true(run, arguments)) out.push_back(change(item));
  return run.iterator(std::move(out));
}

/// select, reject, selectattr and rejectattr.
template <bool of_attribute, bool wanted>
Value select_filter(Renderer& run, const Bound& arguments) {
  const std::vector<Value>& positional = arguments[1]->as<Sequence*>()->items;
  constexpr std::size_t own = of_attribute ? 1 : 0;
  if (positional.size() < own) run.refuse("selectattr and rejectattr need the name of an attribute");
  const Key key = attribute_key(run, own == 0 ? std::nullopt : std::optional(positional[0]));
  const bool tests = positional.size() > own;
  const std::string_view test = tests ? text_of(run, positional[own]) : std::string_view();
  const Arguments rest = passed_on(arguments, tests ? own + 1 : own);
  std::vector<Value> out;
  for (const Value& item : items_if_true(run, arguments)) {
    const Value value = key(item);
    if ((tests ? run.apply_test(test, value, rest) : truth(value)) == wanted) out.push_back(item);
  }
  return run.iterator(std::move(out));
}

constexpr std::array filters_of_sequences = {
    Function{"attr", "value name", 2, attr_filter},
    Function{"batch", "value linecount fill_with", 2, batch_filter},
    Function{"count", "value", 1, length_filter},
    Function{"dictsort", "value case_sensitive by reverse", 1, dictsort_filter},
    Function{"first", "value", 1, first_filter},
    Function{"groupby", "value attribute default case_sensitive", 2, groupby_filter},
    Function{"items", "value", 1, items_filter},
    Function{"join", "value d attribute", 1, join_filter},
    Function{"last", "value", 1, last_filter},
    Function{"length", "value", 1, length_filter},
    Function{"list", "value", 1, list_filter},
    Function{"map", "value *", 1, map_filter},
    Function{"max", "value case_sensitive attribute", 1, extremum_filter<true>},
    Function{"min", "value case_sensitive attribute", 1, extremum_filter<false>},
    Function{"reject", "value *", 1, select_filter<false, false>},
    Function{"rejectattr", "value *", 1, select_filter<true, false>},
    Function{"reverse", "value", 1, reverse_filter},
    Function{"select", "value *", 1, select_filter<false, true>},
    Function{"selectattr", "value *", 1, select_filter<true, true>},
    Function{"slice", "value slices fill_with", 2, slice_filter},
    Function{"sort", "value reverse case_sensitive attribute", 1, sort_filter},
    Function{"sum", "value attribute start", 1, sum_filter},
    Function{"unique", "value case_sensitive attribute", 1, unique_filter},
};

}  // namespace

std::span<const Function> sequence_filters() { return filters_of_sequences; }

}  // namespace rlx::jinja
