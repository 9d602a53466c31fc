#include "text/grammar/schema_limits.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <utility>

#include "rlx/error.h"
#include "text/unicode/unicode.h"

namespace rlx::grammar {
namespace {

const json::Value* find(const json::Value& schema, const char* key) {
  const auto found = schema.find(key);
  return found == schema.end() ? nullptr : &*found;
}

const json::Value* find_number(const json::Value& schema, const char* key, const std::string& place) {
  const json::Value* value = find(schema, key);
  if (value && !value->is_number()) fail("{}: {} is {} (allowed: a number)", place, key, value->dump());
  return value;
}

/// The nearer of two bounds, and whether it is not allowed itself.
std::pair<const json::Value*, bool> bound(const json::Value& schema, const char* closed_key, const char* open_key, bool lower,
                                          const std::string& place) {
  const json::Value* closed = find_number(schema, closed_key, place);
  const json::Value* open = find(schema, open_key);
  if (open && open->is_boolean()) return {closed, open->get<bool>()};
  open = find_number(schema, open_key, place);
  if (!open || (closed && (lower ? *open < *closed : *closed < *open))) return {closed, false};
  return {open, true};
}

bool has_type(const json::Value& value, const std::string& type) {
  if (type == "integer") return value.is_number() && std::trunc(value.get<double>()) == value.get<double>();
  if (type == "number") return value.is_number();
  if (type == "string") return value.is_string();
  if (type == "boolean") return value.is_boolean();
  if (type == "null") return value.is_null();
  if (type == "object") return value.is_object();
  return type != "array" || value.is_array();
}

bool has_a_type(const json::Value& value, const json::Value& types) {
  if (types.is_string()) return has_type(value, types.get<std::string>());
  return std::ranges::any_of(types, [&](const json::Value& type) { return !type.is_string() || has_type(value, type.get<std::string>()); });
}

bool is_within_limits(const json::Value& value, const json::Value& schema, const std::string& place) {
  const auto [least, above] = bound(schema, "minimum", "exclusiveMinimum", true, place);
  const auto [most, below] = bound(schema, "maximum", "exclusiveMaximum", false, place);
  if (least && (value < *least || (above && value == *least))) return false;
  if (most && (*most < value || (below && value == *most))) return false;
  const json::Value* step = find_number(schema, "multipleOf", place);
  if (!step) return true;
  const double quotient = value.get<double>() / step->get<double>();
  return std::abs(quotient - std::round(quotient)) < 1e-9;
}

bool is_as_long(const json::Value& value, const json::Value& schema) {
  const auto length = static_cast<double>(unicode::to_utf32(value.get<std::string>()).size());
  const json::Value *least = find(schema, "minLength"), *most = find(schema, "maxLength");
  return (!least || !least->is_number() || least->get<double>() <= length) &&
         (!most || !most->is_number() || length <= most->get<double>());
}

}  // namespace

bool is_allowed(const json::Value& value, const json::Value& schema, const std::string& place) {
  if (const json::Value* types = find(schema, "type"); types && !has_a_type(value, *types)) return false;
  if (const json::Value* constant = find(schema, "const"); constant && *constant != value) return false;
  if (const json::Value* list = find(schema, "enum"); list && std::ranges::find(*list, value) == list->end()) return false;
  if (value.is_number()) return is_within_limits(value, schema, place);
  return !value.is_string() || is_as_long(value, schema);
}

bool limits_numbers(const json::Value& schema) {
  constexpr std::array keys = {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"};
  return std::ranges::any_of(keys, [&](const char* key) { return schema.contains(key); });
}

std::string implied_type(const json::Value& schema) {
  for (const char* key : {"properties", "required", "additionalProperties"})
    if (schema.contains(key)) return "object";
  for (const char* key : {"items", "prefixItems", "minItems", "maxItems", "uniqueItems"})
    if (schema.contains(key)) return "array";
  for (const char* key : {"minLength", "maxLength", "pattern", "format"})
    if (schema.contains(key)) return "string";
  return limits_numbers(schema) ? "number" : "value";
}

NumberLimits number_limits(const json::Value& schema, bool integer, const std::string& place) {
  NumberLimits limits{.integer = integer, .least = {}, .most = {}, .step = {}};
  const auto [least, above] = bound(schema, "minimum", "exclusiveMinimum", true, place);
  const auto [most, below] = bound(schema, "maximum", "exclusiveMaximum", false, place);
  if (least) limits.least = Decimal::of(*least), limits.above = above;
  if (most) limits.most = Decimal::of(*most), limits.below = below;
  if (const json::Value* step = find_number(schema, "multipleOf", place)) {
    limits.step = Decimal::of(*step);
    if (!(step->get<double>() > 0)) fail("{}: multipleOf is {} (allowed: above 0)", place, step->dump());
  }
  return limits;
}

std::vector<json::Value> listed_values(const json::Value& schema, const std::string& place) {
  const json::Value* list = find(schema, "enum");
  const json::Value alone = list ? json::Value() : json::Value::array({schema.at("const")});
  if (!list) list = &alone;
  if (!list->is_array() || list->empty()) fail("{}: enum is {} (allowed: an array of values)", place, list->dump());
  for (const char* key : {"pattern", "format"})
    if (find(schema, key)) fail("{}: {} beside listed values is not supported", place, key);
  std::vector<json::Value> values;
  std::set<std::string> seen;
  for (const json::Value& value : *list)
    if (is_allowed(value, schema, place) && seen.insert(value.dump()).second) values.push_back(value);
  if (values.empty()) fail("{}: none of the listed values is one that the other keywords allow", place);
  return values;
}

}  // namespace rlx::grammar
