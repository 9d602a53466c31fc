#include "models/config/config_field.h"

#include <limits>

namespace rlx {

double as_number(const JsonField& field, double low, double high) {
  const json::Value& value = field.value();
  if (!value.is_number()) field.refuse("expected a number, found a value of type {}", value.type_name());
  const double number = value.get<double>();
  if (!(number >= low && number <= high)) field.refuse("expected a number in {}..{}, found {}", low, high, number);
  return number;
}

std::int64_t as_size(const JsonField& field) {
  return static_cast<std::int64_t>(field.as_integer(1, std::numeric_limits<std::int32_t>::max()));
}

std::int64_t size_or(const JsonField& config, std::string_view name, std::int64_t otherwise) {
  const auto field = config.find(name);
  return field ? as_size(*field) : otherwise;
}

std::int64_t count_or(const JsonField& config, std::string_view name, std::int64_t otherwise) {
  const auto field = config.find(name);
  return field ? static_cast<std::int64_t>(field->as_integer(0, std::numeric_limits<std::int32_t>::max())) : otherwise;
}

double number_or(const JsonField& config, std::string_view name, double otherwise) {
  const auto field = config.find(name);
  return field ? as_number(*field, -1e30, 1e30) : otherwise;
}

double non_negative_or(const JsonField& config, std::string_view name, double otherwise) {
  const auto field = config.find(name);
  return field ? as_number(*field, 0, 1e30) : otherwise;
}

bool flag_or(const JsonField& config, std::string_view name, bool otherwise) {
  const auto field = config.find(name);
  return field ? field->as_bool() : otherwise;
}

}  // namespace rlx
