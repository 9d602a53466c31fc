#include "text/grammar/schema_apart.h"

#include <algorithm>
#include <limits>
#include <string_view>

#include "text/grammar/schema_limits.h"
#include "text/grammar/schema_merge.h"

namespace rlx::grammar {
namespace {

bool lists_values(const json::Value& schema) { return schema.contains("enum") || schema.contains("const"); }

std::string type_of(const json::Value& schema) {
  const auto type = schema.find("type");
  return type != schema.end() && type->is_string() ? type->get<std::string>() : implied_type(schema);
}

bool is_numeric(std::string_view type) { return type == "number" || type == "integer"; }

/// The largest number of `a` is below the least of `b`.
bool is_below(const NumberLimits& a, const NumberLimits& b) {
  if (!a.most || !b.least) return false;
  return *a.most < *b.least || (*a.most == *b.least && (a.below || b.above));
}

double number_or(const json::Value& schema, const char* key, double otherwise) {
  const auto found = schema.find(key);
  return found != schema.end() && found->is_number() ? found->get<double>() : otherwise;
}

/// The ranges of two keywords that bound a count do not meet.
bool counts_apart(const json::Value& a, const json::Value& b, const char* least, const char* most) {
  const auto below = [&](const json::Value& low, const json::Value& high) {
    return number_or(low, most, std::numeric_limits<double>::infinity()) < number_or(high, least, 0);
  };
  return below(a, b) || below(b, a);
}

json::Value members(const json::Value& schema) {
  const auto found = schema.find("properties");
  return found != schema.end() && found->is_object() ? *found : json::Value::object();
}

std::vector<std::string> required(const json::Value& schema) {
  std::vector<std::string> names;
  for (const json::Value& name : schema.value("required", json::Value::array()))
    if (name.is_string()) names.push_back(name.get<std::string>());
  return names;
}

/// A grammar gives members that are not listed only where they are asked for.
bool is_closed(const json::Value& schema) {
  return schema.contains("additionalProperties") ? schema["additionalProperties"] == false : !members(schema).empty();
}

}  // namespace

bool Apart::are_apart(const json::Value& first, const json::Value& second, int depth) const {
  if (depth == 0) return false;
  const std::vector<json::Value> others = alternatives(second, depth);
  return std::ranges::all_of(alternatives(first, depth), [&](const json::Value& a) {
    return std::ranges::all_of(others, [&](const json::Value& b) { return of_one_type_each(a, b, depth); });
  });
}

/// Schemas without choices between schemas or types, of which one holds where the whole does.
std::vector<json::Value> Apart::alternatives(const json::Value& schema, int depth) const {
  const json::Value whole = plain_(schema);
  if (!whole.is_object() || depth == 0) return whole == false ? std::vector<json::Value>() : std::vector{json::Value::object()};
  std::vector<json::Value> all;
  const auto add = [&](const json::Value& part) {
    for (json::Value& one : alternatives(part, depth - 1)) all.push_back(std::move(one));
  };
  if (whole.value("nullable", json::Value(false)) == true) all.push_back({{"type", "null"}});
  for (const char* key : {"anyOf", "oneOf"}) {
    if (!whole.contains(key)) continue;
    const json::Value demands = demands_beside(whole, key);
    for (const json::Value& part : whole[key]) add(demands.empty() ? part : merged_schemas(demands, part, place_));
    return all;
  }
  if (lists_values(whole) || !whole.contains("type") || !whole["type"].is_array()) return all.push_back(demands_beside(whole, "")), all;
  for (const json::Value& type : whole["type"]) {
    all.push_back(demands_beside(whole, ""));
    all.back()["type"] = type;
  }
  return all;
}

bool Apart::of_one_type_each(const json::Value& a, const json::Value& b, int depth) const {
  const auto forbids = [&](const json::Value& other) {
    return [&](const json::Value& value) { return !is_allowed(value, other, place_); };
  };
  if (lists_values(a)) return std::ranges::all_of(listed_values(a, place_), forbids(b));
  if (lists_values(b)) return std::ranges::all_of(listed_values(b, place_), forbids(a));
  const std::string type = type_of(a), other = type_of(b);
  const bool numeric = is_numeric(type) && is_numeric(other);
  if (type != other && !numeric) return a.contains("type") && b.contains("type");
  if (numeric) return numbers_apart(a, b);
  if (type == "string") return counts_apart(a, b, "minLength", "maxLength");
  if (type == "array") return counts_apart(a, b, "minItems", "maxItems");
  return type == "object" && objects_of(a, b, depth) && objects_of(b, a, depth);
}

bool Apart::numbers_apart(const json::Value& a, const json::Value& b) const {
  const NumberLimits first = number_limits(a, false, place_), second = number_limits(b, false, place_);
  return is_below(first, second) || is_below(second, first);
}

/// No object that the grammar of `a` gives satisfies `b`: it lacks a member, has one too many, or one that is apart.
bool Apart::objects_of(const json::Value& a, const json::Value& b, int depth) const {
  const json::Value own = members(a), others = members(b);
  const auto is_own = [&](const std::string& name) { return own.contains(name); };
  if (is_closed(a) && !std::ranges::all_of(required(b), is_own)) return true;
  const bool closed = b.value("additionalProperties", json::Value(true)) == false;
  return std::ranges::any_of(required(a), [&](const std::string& name) {
    return others.contains(name) ? is_own(name) && are_apart(own[name], others[name], depth - 1) : closed;
  });
}

}  // namespace rlx::grammar
