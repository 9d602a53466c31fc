#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "formats/json/json.h"
#include "formats/json/json_field.h"

namespace rlx {

/// A JSON file of a model's folder. Fields made by `root` refer to it and must not outlive it.
class ConfigFile {
 public:
  /// Throws Error naming the file for what is missing or no JSON. Infinity and NaN are accepted, as Python writes them.
  static ConfigFile open(const std::filesystem::path& path);

  JsonField root() const { return {value_, name_}; }

 private:
  ConfigFile(json::Value value, std::string name) : value_(std::move(value)), name_(std::move(name)) {}

  json::Value value_;
  std::string name_;
};

/// A folder in the layout of Hugging Face: config.json, safetensors files, and what else the model's kind brings.
class ModelFolder {
 public:
  /// Throws Error when `path` is no folder or has no config.json that names a model type.
  static ModelFolder open(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  JsonField config() const { return config_.root(); }
  /// As the config says: "bert".
  const std::string& model_type() const { return model_type_; }
  /// Throws Error naming the model's type and the one that is supported.
  void check_model_type(std::string_view supported, std::string_view hint = {}) const;

 private:
  ModelFolder(std::filesystem::path path, ConfigFile config);

  std::filesystem::path path_;
  ConfigFile config_;
  std::string model_type_;
};

}  // namespace rlx
