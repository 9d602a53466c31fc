#include <algorithm>
#include <array>
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
#include "models/grammar/grammar.h"
#include "rlx/error.h"

namespace rlx::grammar {
namespace {

constexpr int deepest_schema = 100;
constexpr std::size_t longest_gbnf = 1 << 22;
constexpr std::int64_t most_items = 10'000;

/// Rules for JSON as such. White space is short, so that no model fills its answer with it.
constexpr std::array<std::pair<std::string_view, std::string_view>, 15> base_rules = {{
    {"ws", R"([ \t\n\r]{0,20})"},
    {"char", R"([^"\\\x00-\x1F] | "\\" (["\\/bfnrt] | "u" [0-9a-fA-F]{4}))"},
    {"string", R"("\"" char* "\"")"},
    {"integer", R"("-"? ("0" | [1-9] [0-9]{0,17}))"},
    {"natural", R"("0" | [1-9] [0-9]{0,17})"},
    {"positive", R"([1-9] [0-9]{0,17})"},
    {"number", R"(integer ("." [0-9]{1,17})? ([eE] [-+]? [0-9]{1,3})?)"},
    {"boolean", R"("true" | "false")"},
    {"null", R"("null")"},
    {"array", R"("[" ws (value (ws "," ws value)*)? ws "]")"},
    {"object", R"("{" ws (member (ws "," ws member)*)? ws "}")"},
    {"member", R"(string ws ":" ws value)"},
    {"value", "object | array | string | number | boolean | null"},
    {"date", R"([0-9]{4} "-" ("0" [1-9] | "1" [0-2]) "-" ("0" [1-9] | [12] [0-9] | "3" [01]))"},
    {"time",
     R"(([01] [0-9] | "2" [0-3]) ":" [0-5] [0-9] ":" [0-5] [0-9] ("." [0-9]{1,9})? ("Z" | [-+] ([01] [0-9] | "2" [0-3]) ":" [0-5] [0-9]))"},
}};

/// GBNF for exactly this text.
std::string literal(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\', out += c;
    else if (static_cast<unsigned char>(c) < 0x20) out += fmt::format("\\x{:02X}", static_cast<unsigned char>(c));
    else out += c;
  }
  return out + '"';
}

std::string in_parentheses(const std::vector<std::string>& alternatives) { return fmt::format("({})", fmt::join(alternatives, " | ")); }

class SchemaWriter {
 public:
  SchemaWriter(const json::Value& schema, std::string_view what) : root_(schema), what_(what) {}

  std::string text() {
    const std::string body = write(root_, "#");
    std::string out = fmt::format("root ::= {}\n", body);
    for (const auto& [name, rule] : rules_) out += fmt::format("{} ::= {}\n", name, rule);
    for (const auto& [name, rule] : base_rules) out += fmt::format("{} ::= {}\n", name, rule);
    return out;
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

  /// Keywords that tell people something, and those that are looked at; of the others nobody knows what they forbid.
  void check_keywords(const json::Value& schema, const std::string& place) const {
    static const std::set<std::string_view> known = {"title",
                                                     "description",
                                                     "default",
                                                     "examples",
                                                     "$schema",
                                                     "$id",
                                                     "$comment",
                                                     "$defs",
                                                     "definitions",
                                                     "deprecated",
                                                     "readOnly",
                                                     "writeOnly",
                                                     "type",
                                                     "enum",
                                                     "const",
                                                     "properties",
                                                     "required",
                                                     "items",
                                                     "prefixItems",
                                                     "minItems",
                                                     "maxItems",
                                                     "anyOf",
                                                     "oneOf",
                                                     "allOf",
                                                     "$ref",
                                                     "minLength",
                                                     "maxLength",
                                                     "format",
                                                     "minimum",
                                                     "exclusiveMinimum",
                                                     "additionalProperties",
                                                     "strict",
                                                     "nullable"};
    for (const auto& [key, value] : schema.items())
      if (!known.contains(key)) refuse(place, "keyword {} is not supported", quote_name(key));
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
    if (schema.contains("$ref")) return write_reference(schema["$ref"], place);
    if (schema.contains("const")) return literal(schema["const"].dump());
    if (schema.contains("enum")) return write_enum(schema["enum"], place);
    for (const char* key : {"anyOf", "oneOf"})
      if (schema.contains(key)) return write_choice(schema[key], place + "/" + key);
    if (schema.contains("allOf")) return write_all(schema, place);
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

  static std::string implied_type(const json::Value& schema) {
    for (const char* key : {"properties", "required", "additionalProperties"})
      if (schema.contains(key)) return "object";
    for (const char* key : {"items", "prefixItems", "minItems", "maxItems"})
      if (schema.contains(key)) return "array";
    for (const char* key : {"minLength", "maxLength", "format"})
      if (schema.contains(key)) return "string";
    return schema.contains("minimum") || schema.contains("exclusiveMinimum") ? "number" : "value";
  }

  std::string write_enum(const json::Value& values, const std::string& place) {
    if (!values.is_array() || values.empty()) refuse(place, "enum is {} (allowed: an array of values)", values.dump());
    std::vector<std::string> alternatives;
    for (const json::Value& value : values) alternatives.push_back(literal(value.dump()));
    return add_rule(in_parentheses(alternatives));
  }

  std::string write_choice(const json::Value& schemas, const std::string& place) {
    if (!schemas.is_array() || schemas.empty()) refuse(place, "expected an array of schemas");
    std::vector<std::string> alternatives;
    for (std::size_t i = 0; i < schemas.size(); ++i) alternatives.push_back(write(schemas[i], fmt::format("{}/{}", place, i)));
    return add_rule(in_parentheses(alternatives));
  }

  /// Objects that must satisfy several schemas have the members of all.
  std::string write_all(const json::Value& schema, const std::string& place) {
    json::Value merged = schema;
    merged.erase("allOf");
    if (!schema["allOf"].is_array()) refuse(place, "allOf: expected an array of schemas");
    for (const json::Value& part : schema["allOf"]) {
      const json::Value& resolved = part.is_object() && part.contains("$ref") ? referred(part["$ref"], place) : part;
      if (!resolved.is_object()) refuse(place, "allOf: a value of type {} (allowed: objects)", resolved.type_name());
      for (const auto& [key, value] : resolved.items()) {
        if (key == "properties" && value.is_object()) {
          for (const auto& [name, property] : value.items()) merged["properties"][name] = property;
        } else if (key == "required" && value.is_array()) {
          for (const json::Value& name : value) merged["required"].push_back(name);
        } else if (!merged.contains(key) || merged[key] == value) {
          merged[key] = value;
        } else {
          refuse(place, "allOf: the keyword {} differs between schemas, which is not supported", quote_name(key));
        }
      }
    }
    return write(merged, place);
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
    const json::Value& schema = referred(reference, place);
    const auto name = reference.get<std::string>();
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

  std::string write_number(const std::string& type, const json::Value& schema, const std::string& place) const {
    const bool least = schema.contains("minimum"), above = schema.contains("exclusiveMinimum");
    if (!least && !above) return type;
    const json::Value& bound = schema[least ? "minimum" : "exclusiveMinimum"];
    const bool zero = bound == 0, one = bound == 1;
    if (type != "integer" || (least && above) || !(least ? zero || one : zero))
      refuse(place, "{} {} of a {} is not supported (supported: integers of at least 0 or 1)", least ? "minimum" : "exclusiveMinimum",
             bound.dump(), type);
    return least && zero ? "natural" : "positive";
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

  std::string write_string(const json::Value& schema, const std::string& place) const {
    const std::int64_t least = count(schema, "minLength", place, 0), most = count(schema, "maxLength", place, -1);
    if (most >= 0 && most < least) refuse(place, "minLength {} is above maxLength {}", least, most);
    if (schema.contains("format")) return write_format(schema["format"], place);
    return least == 0 && most < 0 ? "string" : fmt::format("\"\\\"\" char{} \"\\\"\"", times(least, most));
  }

  std::string write_format(const json::Value& format, const std::string& place) const {
    if (format == "date") return R"("\"" date "\"")";
    if (format == "time") return R"("\"" time "\"")";
    if (format == "date-time") return R"("\"" date "T" time "\"")";
    if (format == "uuid") return R"("\"" [0-9a-fA-F]{8} ("-" [0-9a-fA-F]{4}){3} "-" [0-9a-fA-F]{12} "\"")";
    refuse(place, "format {} is not supported (supported: date, time, date-time, uuid)", format.dump());
  }

  std::string write_array(const json::Value& schema, const std::string& place) {
    const std::int64_t least = count(schema, "minItems", place, 0), most = count(schema, "maxItems", place, -1);
    if (most >= 0 && most < least) refuse(place, "minItems {} is above maxItems {}", least, most);
    if (schema.contains("prefixItems")) return write_tuple(schema, place);
    if (most == 0) return R"("[" ws "]")";
    const std::string item = add_rule(schema.contains("items") ? write(schema["items"], place + "/items") : "value");
    const std::string more = fmt::format("(ws \",\" ws {}){}", item, times(std::max<std::int64_t>(least - 1, 0), most < 0 ? -1 : most - 1));
    const std::string items = fmt::format("{} {}", item, more);
    return add_rule(fmt::format("\"[\" ws {} ws \"]\"", least > 0 ? items : fmt::format("({})?", items)));
  }

  /// Exactly the items that prefixItems lists.
  std::string write_tuple(const json::Value& schema, const std::string& place) {
    const json::Value& prefix = schema["prefixItems"];
    if (!prefix.is_array() || prefix.empty()) refuse(place, "prefixItems: expected an array of schemas");
    if (schema.contains("items") && schema["items"] != false)
      refuse(place, "items beside prefixItems are not supported (supported: false)");
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
    for (const json::Value& name : schema["required"]) {
      if (!name.is_string()) refuse(place, "required has {} (allowed: names)", name.dump());
      if (!properties.contains(name.get<std::string>()))
        refuse(place, "required {} is not among the properties", quote_name(name.get<std::string>()));
      names.insert(name.get<std::string>());
    }
    return names;
  }

  /// From the last property to the first: what may follow where nothing is written yet, and where a comma is due.
  std::string write_properties(const json::Value& properties, const std::set<std::string>& required,
                               const std::optional<std::string>& others, const std::string& place) {
    std::vector<std::pair<std::string, bool>> members;  // a member's rule, and whether it must be there
    for (const auto& [name, schema] : properties.items())
      members.emplace_back(add_rule(fmt::format("{} ws \":\" ws {}", literal(json::Value(name).dump()),
                                                write(schema, fmt::format("{}/properties/{}", place, name)))),
                           required.contains(name));
    std::string first, later;
    if (others) {
      const std::string other = add_rule(*others);
      later = add_rule(fmt::format("(ws \",\" ws {})*", other));
      first = add_rule(fmt::format("({} {})?", other, later));
    }
    for (auto member = members.rbegin(); member != members.rend(); ++member) {
      const std::string with = fmt::format("{} {}", member->first, later);
      first = add_rule(member->second ? with : first.empty() ? fmt::format("({})?", with) : fmt::format("{} | {}", with, first));
      const std::string after_comma = fmt::format(R"(ws "," ws {})", member->first);
      later = add_rule(member->second ? fmt::format("{} {}", after_comma, later) : fmt::format("({})? {}", after_comma, later));
    }
    return first;
  }

  const json::Value& root_;
  std::string_view what_;
  std::vector<std::pair<std::string, std::string>> rules_;
  std::map<std::string, std::string> references_;
  std::size_t written_ = 0;
  int depth_ = 0;
};

}  // namespace

std::string gbnf_of_json_schema(const json::Value& schema, std::string_view what) { return SchemaWriter(schema, what).text(); }

}  // namespace rlx::grammar
