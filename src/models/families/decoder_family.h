#pragma once
#include <initializer_list>
#include <string_view>
#include <vector>

#include "formats/json/json_field.h"
#include "models/config/decoder_config.h"
#include "models/families/weight_names.h"

namespace rlx {

/// A family of language models in Hugging Face's layout: how its config is read and written, and how its checkpoints name the tensors. One
/// file each in models/families.
class DecoderFamily {
 public:
  using Read = DecoderConfig (*)(const JsonField& config);
  using Names = WeightNames (*)(const DecoderConfig& config);
  using Write = json::Value (*)(const DecoderConfig& config);

  /// Makes the family known under the names that `model_type` may have. Without `write` no folders are made of its models.
  DecoderFamily(std::initializer_list<std::string_view> model_types, Read read, Names names, Write write = nullptr);
  DecoderFamily(const DecoderFamily&) = delete;
  DecoderFamily& operator=(const DecoderFamily&) = delete;

  /// Null for a type that no family has.
  static const DecoderFamily* find(std::string_view model_type);
  /// The types of all families, in alphabetical order.
  static std::vector<std::string_view> model_types();

  /// What the config leaves out is what the class of its type takes (class_defaults.h).
  DecoderConfig read(const JsonField& config) const;
  WeightNames weight_names(const DecoderConfig& config) const { return names_(config); }
  /// The inverse of `read`, where the family has one: config.json but for its classes and tokens.
  json::Value write(const DecoderConfig& config) const;

 private:
  Read read_;
  Names names_;
  Write write_;
};

}  // namespace rlx
