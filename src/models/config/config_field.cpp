#include "models/config/config_field.h"

#include <limits>

#include "models/config/model_folder.h"

namespace rlx {

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
