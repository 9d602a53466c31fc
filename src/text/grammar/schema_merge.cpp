#include "text/grammar/schema_merge.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/names.h"
#include "rlx/error.h"

namespace rlx::grammar {
namespace {

constexpr std::array<std::string_view, 13> annotations = {"title",    "description", "default",     "examples", "$schema",
                                                          "$id",      "$defs",       "definitions", "$comment", "deprecated",
                                                          "readOnly", "writeOnly",   "strict"};

json::Value as_list(const json::Value& types) { return types.is_array() ? types : json::Value::array({types}); }

/// An integer is a number, too.
json::Value common_types(const json::Value& first, const json::Value& second, const std::string& place) {
  json::Value common = json::Value::array();
  for (const json::Value& a : as_list(first))
    for (const json::Value& b : as_list(second)) {
      const bool both = a == b || (a == "integer" && b == "number") || (a == "number" && b == "integer");
      const json::Value& narrow = b == "integer" ? b : a;
      if (both && std::ranges::find(common, narrow) == common.end()) common.push_back(narrow);
    }
  if (common.empty()) fail("{}: no value is of type {} and of type {}", place, first.dump(), second.dump());
  return common.size() == 1 ? common[0] : common;
}

/// Members that one schema knows and the other closes out.
void check_closed(const json::Value& closed, const json::Value& open, const std::string& place) {
  if (closed.value("additionalProperties", json::Value(true)) == true) return;
  const json::Value known = closed.value("properties", json::Value::object()), others = open.value("properties", json::Value::object());
  for (const auto& [name, property] : others.items())
    if (!known.contains(name))
      fail("{}: additionalProperties of one schema beside the property {} of another is not supported", place, quote_name(name));
}

/// A member that both describe has to be what both say.
void add_members(json::Value& into, const json::Value& members) {
  for (const auto& [name, schema] : members.items()) {
    if (!into.contains(name) || into[name] == schema) into[name] = schema;
    else into[name] = {{"allOf", json::Value::array({into[name], schema})}};
  }
}

void add_keyword(json::Value& into, const std::string& key, const json::Value& value, const std::string& place) {
  if (!into.contains(key) || into[key] == value) into[key] = value;
  else if (key == "properties" && value.is_object() && into[key].is_object()) add_members(into[key], value);
  else if ((key == "required" || key == "allOf") && value.is_array() && into[key].is_array())
    into[key].insert(into[key].end(), value.begin(), value.end());
  else if (key == "type") into[key] = common_types(into[key], value, place);
  else fail("{}: the keyword {} differs between schemas that must hold together, which is not supported", place, quote_name(key));
}

}  // namespace

bool is_annotation(std::string_view keyword) { return std::ranges::find(annotations, keyword) != annotations.end(); }

json::Value demands_beside(const json::Value& schema, std::string_view keyword) {
  json::Value demands = json::Value::object();
  for (const auto& [key, value] : schema.items())
    if (key != keyword && key != "nullable" && !is_annotation(key)) demands[key] = value;
  return demands;
}

json::Value merged_schemas(const json::Value& first, const json::Value& second, const std::string& place) {
  for (const json::Value* schema : {&first, &second})
    if (!schema->is_object()) fail("{}: a value of type {} (allowed: objects)", place, schema->type_name());
  check_closed(first, second, place);
  check_closed(second, first, place);
  json::Value merged = demands_beside(first, "");
  const json::Value more = demands_beside(second, "");
  for (const auto& [key, value] : more.items()) add_keyword(merged, key, value, place);
  return merged;
}

}  // namespace rlx::grammar
