#include "formats/json/json_field.h"

#include <algorithm>

#include <fmt/ranges.h>

#include "base/names.h"

namespace rlx {

JsonField JsonField::member(const json::Value& value, std::string_view name) const {
  const bool plain =
      std::all_of(name.begin(), name.end(), [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; });
  const std::string_view dot = path_.empty() ? "" : ".";
  return {value, file_, plain ? fmt::format("{}{}{}", path_, dot, name) : fmt::format("{}[{}]", path_, quote_name(name))};
}

void JsonField::refuse_type(std::string_view expected) const {
  refuse("expected {}, found a value of type {}", expected, value_->type_name());
}

void JsonField::refuse_kind(std::string_view supported) const {
  at("type").refuse("{} is not supported (supported: {})", quote_name(kind()), supported);
}

JsonField JsonField::at(std::string_view name) const {
  if (!value_->is_object()) refuse_type("an object");
  const auto found = value_->find(name);
  if (found == value_->end()) refuse("the field '{}' is missing", name);
  return member(*found, name);
}

std::optional<JsonField> JsonField::find(std::string_view name) const {
  if (!value_->is_object()) refuse_type("an object");
  const auto found = value_->find(name);
  if (found == value_->end() || found->is_null()) return std::nullopt;
  return member(*found, name);
}

std::vector<JsonField> JsonField::items() const {
  if (!value_->is_array()) refuse_type("an array");
  std::vector<JsonField> result;
  for (const json::Value& item : *value_) result.emplace_back(item, file_, fmt::format("{}[{}]", path_, result.size()));
  return result;
}

std::vector<std::pair<std::string, JsonField>> JsonField::members() const {
  if (!value_->is_object()) refuse_type("an object");
  std::vector<std::pair<std::string, JsonField>> result;
  for (const auto& [name, value] : value_->items()) result.emplace_back(name, member(value, name));
  return result;
}

std::string JsonField::as_string() const {
  if (!value_->is_string()) refuse_type("a string");
  return value_->get<std::string>();
}

bool JsonField::as_bool() const {
  if (!value_->is_boolean()) refuse_type("true or false");
  return value_->get<bool>();
}

std::uint64_t JsonField::as_integer(std::uint64_t low, std::uint64_t high) const {
  if (!value_->is_number_unsigned() || value_->get<std::uint64_t>() < low || value_->get<std::uint64_t>() > high) {
    refuse("expected an integer in {}..{}, found {}", low, high, value_->is_number() ? value_->dump() : value_->type_name());
  }
  return value_->get<std::uint64_t>();
}

double JsonField::as_number() const {
  if (!value_->is_number()) refuse_type("a number");
  return value_->get<double>();
}

std::size_t JsonField::as_one_of(std::initializer_list<std::string_view> names) const {
  const std::string name = as_string();
  std::size_t index = 0;
  for (std::string_view candidate : names) {
    if (candidate == name) return index;
    ++index;
  }
  refuse("{} is not known (allowed: {})", quote_name(name), fmt::join(names, ", "));
}

}  // namespace rlx
