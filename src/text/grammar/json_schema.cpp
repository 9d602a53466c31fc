#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/names.h"
#include "rlx/error.h"
#include "text/grammar/grammar.h"
#include "text/grammar/json_rules.h"
#include "text/grammar/member_rules.h"
#include "text/grammar/number_rules.h"
#include "text/grammar/pattern_rules.h"
#include "text/grammar/schema_apart.h"
#include "text/grammar/schema_limits.h"
#include "text/grammar/schema_merge.h"

namespace rlx::grammar {
namespace {

constexpr int deepest_schema = 100;
constexpr std::size_t longest_gbnf = 1 << 22;
constexpr std::int64_t most_items = 10'000;
constexpr std::size_t most_unique = 10;

std::string in_parentheses(const std::vector<std::string>& alternatives) { return fmt::format("({})", fmt::join(alternatives, " | ")); }

class SchemaWriter {
 public:
  SchemaWriter(const json::Value& schema, std::string_view what) : root_(schema), what_(what) {}

  std::string text() {
    const std::string body = write(root_, "#");
    std::string out = fmt::format("root ::= {}\n", body);
    for (const auto& [name, rule] : rules_) out += fmt::format("{} ::= {}\n", name, rule);
    return out + json_rules() + (has_formats_ ? format_rules() : "");
  }

 private:
  template <class... Args>
  [[noreturn]] void refuse(std::string_view place, fmt::format_string<Args...> text, Args&&... args) const {
    fail("{}: {}: {}", what_, place, fmt::format(text, std::forward<Args>(args)...));
  }

  std::string add_rule(std::string body) {
    written_ += body.size();
    if (written_ > longest_gbnf) refuse("#", "the grammar is longer than {} bytes", longest_gbnf);
    const std::string name = fmt::format("s{}", rules_.size());
    rules_.emplace_back(name, std::move(body));
    return name;
  }

  AddRule adder() {
    return [this](std::string body) { return add_rule(std::move(body)); };
  }

  /// The place for messages.
  std::string full(const std::string& place) const { return fmt::format("{}: {}", what_, place); }

  /// Keywords that tell people something, and those that are looked at; of the others nobody knows what they forbid.
  void check_keywords(const json::Value& schema, const std::string& place) const {
    static const std::set<std::string_view> known = {// clang-format off
        "nullable", "type", "enum", "const", "anyOf", "oneOf", "allOf", "$ref",
        "properties", "required", "additionalProperties", "items", "prefixItems", "minItems", "maxItems", "uniqueItems",
        "minLength", "maxLength", "pattern", "format", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"};
    // clang-format on
    for (const auto& [key, value] : schema.items())
      if (!known.contains(key) && !is_annotation(key)) refuse(place, "keyword {} is not supported", quote_name(key));
  }

  /// A piece of GBNF that may stand in a sequence.
  std::string write(const json::Value& schema, const std::string& place) {
    if (schema.is_boolean()) return schema.get<bool>() ? "value" : refuse_false(place);
    if (!schema.is_object()) refuse(place, "a value of type {} (allowed: an object, true, false)", schema.type_name());
    if (++depth_ > deepest_schema) refuse(place, "nested more than {} deep", deepest_schema);
    check_keywords(schema, place);
    std::string body = write_object_of_keywords(schema, place);
    if (schema.contains("nullable") && schema["nullable"] == true) body = in_parentheses({body, "null"});
    --depth_;
    return body;
  }

  std::string refuse_false(const std::string& place) const { refuse(place, "the schema 'false' allows nothing"); }

  std::string write_object_of_keywords(const json::Value& schema, const std::string& place) {
    if (schema.contains("allOf")) return write(all_merged(schema, place), place);
    if (schema.contains("$ref")) return write_reference(schema, place);
    for (const char* key : {"anyOf", "oneOf"})
      if (schema.contains(key)) return write_choice(schema, key, place);
    if (schema.contains("const") || schema.contains("enum")) return write_values(listed_values(schema, full(place)));
    if (!schema.contains("type")) return write_type(implied_type(schema), schema, place);
    const json::Value& type = schema["type"];
    if (type.is_string()) return write_type(type.get<std::string>(), schema, place);
    if (!type.is_array() || type.empty()) refuse(place, "type is {} (allowed: a name or names of types)", type.dump());
    std::vector<std::string> alternatives;
    for (const json::Value& name : type) {
      if (!name.is_string()) refuse(place, "type has {} (allowed: names of types)", name.dump());
      alternatives.push_back(write_type(name.get<std::string>(), schema, place));
    }
    return in_parentheses(alternatives);
  }

  std::string write_values(const std::vector<json::Value>& values) {
    if (values.size() == 1) return literal(values[0].dump());
    std::vector<std::string> alternatives;
    for (const json::Value& value : values) alternatives.push_back(literal(value.dump()));
    return add_rule(in_parentheses(alternatives));
  }

  /// What stands beside the choice holds of each alternative.
  std::string write_choice(const json::Value& schema, const std::string& key, const std::string& place) {
    const json::Value& schemas = schema[key];
    if (!schemas.is_array() || schemas.empty()) refuse(place + "/" + key, "expected an array of schemas");
    const json::Value demands = demands_beside(schema, key);
    std::vector<json::Value> parts;
    std::vector<std::string> alternatives;
    for (std::size_t i = 0; i < schemas.size(); ++i) {
      const std::string inner = fmt::format("{}/{}/{}", place, key, i);
      parts.push_back(demands.empty() ? schemas[i] : merged_schemas(demands, schemas[i], full(inner)));
      alternatives.push_back(write(parts.back(), inner));
    }
    if (key == "oneOf") check_apart(parts, place);
    return add_rule(in_parentheses(alternatives));
  }

  /// Of `oneOf` one alternative holds, which a grammar gives where they are apart.
  void check_apart(const std::vector<json::Value>& parts, const std::string& place) const {
    const Apart apart([&](const json::Value& schema) { return plain(schema, place); }, full(place));
    for (std::size_t i = 0; i < parts.size(); ++i)
      for (std::size_t j = 0; j < i; ++j)
        if (!apart(parts[j], parts[i]))
          refuse(place,
                 "oneOf: {} and {} may both hold of one value, which is not supported (supported: alternatives of other types, "
                 "values, limits or required members; anyOf)",
                 j, i);
  }

  /// The same without references and allOf, where these end.
  json::Value plain(json::Value schema, const std::string& place) const {
    for (int steps = 0; schema.is_object() && steps < deepest_schema; ++steps) {
      if (schema.contains("allOf")) schema = all_merged(schema, place);
      else if (schema.contains("$ref")) schema = resolved(schema, place);
      else return schema;
    }
    return true;
  }

  json::Value all_merged(const json::Value& schema, const std::string& place) const {
    if (!schema["allOf"].is_array()) refuse(place, "allOf: expected an array of schemas");
    json::Value merged = demands_beside(schema, "allOf");
    for (const json::Value& part : schema["allOf"]) merged = merged_schemas(merged, resolved(part, place), full(place) + ": allOf");
    return merged;
  }

  /// What a reference stands for, with what is demanded beside it.
  json::Value resolved(const json::Value& schema, const std::string& place) const {
    if (!schema.is_object() || !schema.contains("$ref")) return schema;
    const json::Value demands = demands_beside(schema, "$ref");
    const json::Value& other = referred(schema["$ref"], place);
    return demands.empty() ? other : merged_schemas(other, demands, full(place));
  }

  const json::Value& referred(const json::Value& reference, const std::string& place) const {
    const std::string name = reference.is_string() ? reference.get<std::string>() : "";
    if (!name.starts_with("#")) refuse(place, "$ref is {} (allowed: places in this schema, such as \"#/$defs/x\")", reference.dump());
    try {
      return root_.at(json::Value::json_pointer(name.substr(1)));
    } catch (const json::Value::exception&) {
      refuse(place, "$ref: there is no {}", quote_name(name));
    }
  }

  /// A rule of its own for each place that is referred to, so that schemas may hold themselves.
  std::string write_reference(const json::Value& reference, const std::string& place) {
    const json::Value& schema = referred(reference["$ref"], place);
    if (!demands_beside(reference, "$ref").empty())
      if (const json::Value both = resolved(reference, place); both != demands_beside(schema, "")) return write(both, place);
    const auto name = reference["$ref"].get<std::string>();
    if (const auto known = references_.find(name); known != references_.end()) return known->second;
    const std::string rule = add_rule("");
    references_.emplace(name, rule);
    const std::size_t index = rules_.size() - 1;
    const int depth = std::exchange(depth_, depth_ + 1);
    rules_[index].second = write(schema, name);
    depth_ = depth;
    return rule;
  }

  std::string write_type(const std::string& type, const json::Value& schema, const std::string& place) {
    if (type == "object") return write_members(schema, place);
    if (type == "array") return write_array(schema, place);
    if (type == "string") return write_string(schema, place);
    if (type == "integer" || type == "number") return write_number(type, schema, place);
    if (type == "boolean" || type == "null" || type == "value") return type;
    refuse(place, "type {} (allowed: object, array, string, number, integer, boolean, null)", quote_name(type));
  }

  std::string write_number(const std::string& type, const json::Value& schema, const std::string& place) {
    if (!limits_numbers(schema)) return type;
    const std::string rule = number_rules(number_limits(schema, type == "integer", full(place)), adder(), full(place));
    if (rule.empty()) refuse(place, "there is no {} of up to 18 digits within the limits", type);
    return rule;
  }

  std::int64_t count(const json::Value& schema, const char* key, const std::string& place, std::int64_t initial) const {
    if (!schema.contains(key)) return initial;
    const json::Value& value = schema[key];
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() > static_cast<std::uint64_t>(most_items))
      refuse(place, "{} is {} (allowed: 0..{})", key, value.dump(), most_items);
    return value.get<std::int64_t>();
  }

  /// "{2,5}", "{2,}".
  static std::string times(std::int64_t least, std::int64_t most) {
    return most < 0 ? fmt::format("{{{},}}", least) : fmt::format("{{{},{}}}", least, most);
  }

  std::string write_string(const json::Value& schema, const std::string& place) {
    const std::int64_t least = count(schema, "minLength", place, 0), most = count(schema, "maxLength", place, -1);
    if (most >= 0 && most < least) refuse(place, "minLength {} is above maxLength {}", least, most);
    const bool format = schema.contains("format"), pattern = schema.contains("pattern");
    if (format && (pattern || least > 0 || most >= 0)) refuse(place, "format beside pattern, minLength or maxLength is not supported");
    if (format) return write_format(schema["format"], place);
    if (!pattern) return least == 0 && most < 0 ? "string" : fmt::format(R"("\"" char{} "\"")", times(least, most));
    if (!schema["pattern"].is_string()) refuse(place, "pattern is {} (allowed: a regular expression)", schema["pattern"].dump());
    const std::optional<std::int64_t> bound = most < 0 ? std::nullopt : std::optional(most);
    return add_rule(
        fmt::format(R"("\"" {} "\"")", pattern_rules(schema["pattern"].get<std::string>(), least, bound, adder(), full(place))));
  }

  std::string write_format(const json::Value& format, const std::string& place) {
    const std::string_view rule = format.is_string() ? format_rule(format.get<std::string>()) : std::string_view();
    if (rule.empty()) refuse(place, "format {} is not supported (supported: {})", format.dump(), format_names());
    has_formats_ = true;
    return fmt::format(R"("\"" {} "\"")", rule);
  }

  std::string write_array(const json::Value& schema, const std::string& place) {
    const std::int64_t least = count(schema, "minItems", place, 0), most = count(schema, "maxItems", place, -1);
    if (most >= 0 && most < least) refuse(place, "minItems {} is above maxItems {}", least, most);
    if (schema.contains("prefixItems")) return write_tuple(schema, least, most, place);
    if (most == 0) return R"("[" ws "]")";
    if (most != 1 && is_unique(schema, place)) return write_unique(schema, least, most, place);
    const std::string item = add_rule(schema.contains("items") ? write(schema["items"], place + "/items") : "value");
    const std::string more = fmt::format("(ws \",\" ws {}){}", item, times(std::max<std::int64_t>(least - 1, 0), most < 0 ? -1 : most - 1));
    const std::string items = fmt::format("{} {}", item, more);
    return add_rule(fmt::format("\"[\" ws {} ws \"]\"", least > 0 ? items : fmt::format("({})?", items)));
  }

  bool is_unique(const json::Value& schema, const std::string& place) const {
    if (!schema.contains("uniqueItems")) return false;
    if (!schema["uniqueItems"].is_boolean()) refuse(place, "uniqueItems is {} (allowed: true, false)", schema["uniqueItems"].dump());
    return schema["uniqueItems"].get<bool>();
  }

  /// All values that items may have.
  std::vector<json::Value> values_of_items(const json::Value& schema, const std::string& place) const {
    json::Value items = schema.value("items", json::Value::object());
    for (int steps = 0; items.is_object() && items.contains("$ref") && steps < deepest_schema; ++steps) items = resolved(items, place);
    if (items.is_object()) {
      if (items.contains("enum") || items.contains("const")) return listed_values(items, full(place + "/items"));
      if (items.contains("type") && items["type"] == "boolean") return {true, false};
    }
    refuse(place, "uniqueItems is supported where items are listed (enum, const, boolean)");
  }

  /// In any order, each at most once: a rule for each set of values that are left.
  std::string write_unique(const json::Value& schema, std::int64_t least, std::int64_t most, const std::string& place) {
    std::vector<json::Value> values;
    for (const json::Value& value : values_of_items(schema, place))
      if (std::ranges::find(values, value) == values.end()) values.push_back(value);  // 1.0 is 1
    if (values.size() > most_unique)
      refuse(place, "uniqueItems of {} values takes too many rules (supported: up to {})", values.size(), most_unique);
    if (least > static_cast<std::int64_t>(values.size())) refuse(place, "minItems {} of {} values cannot be unique", least, values.size());
    const unsigned all = (1U << values.size()) - 1;
    std::vector<std::string> rules(all + 1);  // by the set of values that were used
    for (unsigned used = all + 1; used-- > 0;) {
      const int length = std::popcount(used);
      std::vector<std::string> alternatives;
      for (std::size_t i = 0; i < values.size() && (most < 0 || length < most); ++i)
        if ((used >> i & 1) == 0)
          alternatives.push_back(fmt::format("{}{} {}", used == 0 ? "" : "ws \",\" ws ", literal(values[i].dump()), rules[used | 1U << i]));
      if (length >= least) alternatives.emplace_back(R"("")");
      rules[used] = add_rule(in_parentheses(alternatives));
    }
    return add_rule(fmt::format(R"("[" ws {} ws "]")", rules[0]));
  }

  /// Exactly the items that prefixItems lists.
  std::string write_tuple(const json::Value& schema, std::int64_t least, std::int64_t most, const std::string& place) {
    const json::Value& prefix = schema["prefixItems"];
    if (!prefix.is_array() || prefix.empty()) refuse(place, "prefixItems: expected an array of schemas");
    if (schema.contains("items") && schema["items"] != false)
      refuse(place, "items beside prefixItems are not supported (supported: false)");
    if (is_unique(schema, place)) refuse(place, "uniqueItems beside prefixItems is not supported");
    const auto length = static_cast<std::int64_t>(prefix.size());
    if (length < least || (most >= 0 && length > most))
      refuse(place, "prefixItems lists {} items, minItems and maxItems allow {}..{}", length, least,
             most < 0 ? "" : fmt::format("{}", most));
    std::string items;
    for (std::size_t i = 0; i < prefix.size(); ++i)
      items += fmt::format("{}{}", i > 0 ? " ws \",\" ws " : "", write(prefix[i], fmt::format("{}/prefixItems/{}", place, i)));
    return add_rule(fmt::format("\"[\" ws {} ws \"]\"", items));
  }

  std::string write_members(const json::Value& schema, const std::string& place) {
    const json::Value none = json::Value::object();
    const json::Value& properties = schema.contains("properties") ? schema["properties"] : none;
    if (!properties.is_object()) refuse(place, "properties: a value of type {} (allowed: an object)", properties.type_name());
    const std::set<std::string> required = required_names(schema, properties, place);
    std::optional<std::string> others;  // members that are not listed
    if (schema.contains("additionalProperties") && schema["additionalProperties"] != false)
      others = fmt::format("string ws \":\" ws {}", write(schema["additionalProperties"], place + "/additionalProperties"));
    if (properties.empty()) {
      if (!schema.contains("additionalProperties")) return "object";
      return others ? add_rule(fmt::format("\"{{\" ws ({0} (ws \",\" ws {0})*)? ws \"}}\"", add_rule(*others))) : R"("{" ws "}")";
    }
    return add_rule(fmt::format("\"{{\" ws {} ws \"}}\"", write_properties(properties, required, others, place)));
  }

  std::set<std::string> required_names(const json::Value& schema, const json::Value& properties, const std::string& place) const {
    std::set<std::string> names;
    if (!schema.contains("required")) return names;
    if (!schema["required"].is_array())
      refuse(place, "required: a value of type {} (allowed: an array of names)", schema["required"].type_name());
    std::set<std::string_view> listed;
    for (const auto& [name, property] : properties.items()) listed.insert(name);
    for (const json::Value& name : schema["required"]) {
      if (!name.is_string()) refuse(place, "required has {} (allowed: names)", name.dump());
      if (!listed.contains(name.get<std::string>()))
        refuse(place, "required {} is not among the properties", quote_name(name.get<std::string>()));
      names.insert(name.get<std::string>());
    }
    return names;
  }

  std::string write_properties(const json::Value& properties, const std::set<std::string>& required,
                               const std::optional<std::string>& others, const std::string& place) {
    std::vector<Member> members;
    for (const auto& [name, schema] : properties.items())
      members.push_back({json::Value(name).dump(), write(schema, fmt::format("{}/properties/{}", place, name)), required.contains(name)});
    return member_rules(members, others, adder());
  }

  const json::Value& root_;
  std::string_view what_;
  std::vector<std::pair<std::string, std::string>> rules_;
  std::map<std::string, std::string> references_;
  std::size_t written_ = 0;
  bool has_formats_ = false;
  int depth_ = 0;
};

}  // namespace

std::string gbnf_of_json_schema(const json::Value& schema, std::string_view what) { return SchemaWriter(schema, what).text(); }

}  // namespace rlx::grammar
