#include "models/config/model_folder.h"

#include "base/files/near_files.h"
#include "base/names.h"

namespace rlx {

ConfigFile ConfigFile::open(const std::filesystem::path& path) {
  return {json::read_file(path, {.allow_non_finite = true}), path.string()};
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
