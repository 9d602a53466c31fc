#include "models/config/model_folder.h"

#include <limits>

#include "base/files/near_files.h"
#include "base/names.h"

namespace rlx {

ConfigFile ConfigFile::open(const std::filesystem::path& path) {
  return {json::read_file(path, {.allow_non_finite = true}), path.string()};
}

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

ModelFolder::ModelFolder(std::filesystem::path path, ConfigFile config)
    : path_(std::move(path)), config_(std::move(config)), model_type_(this->config().at("model_type").as_string()) {}

ModelFolder ModelFolder::open(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error))
    fail("{}: {}{}", path.string(), error ? error.message() : "not a folder (expected one with a model's config.json)", near_files(path));
  const std::filesystem::path config = path / "config.json";
  if (!std::filesystem::exists(config, error)) {
    if (error) fail("{}: {}", config.string(), error.message());
    fail("{}: no config.json in this folder (expected a model in Hugging Face's layout)", path.string());
  }
  return {path, ConfigFile::open(config)};
}

void ModelFolder::check_model_type(std::string_view supported, std::string_view hint) const {
  if (model_type_ != supported) {
    config().at("model_type").refuse("{} is not supported{} (supported: {})", quote_name(model_type_), hint, supported);
  }
}

}  // namespace rlx
