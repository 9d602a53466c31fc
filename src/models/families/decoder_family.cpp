#include "models/families/decoder_family.h"

#include <map>

#include "models/config/class_defaults.h"

namespace rlx {
namespace {

std::map<std::string_view, const DecoderFamily*>& families() {
  static std::map<std::string_view, const DecoderFamily*> all;
  return all;
}

}  // namespace

DecoderFamily::DecoderFamily(std::initializer_list<std::string_view> model_types, Read read, Names names, Write write)
    : read_(read), names_(names), write_(write) {
  for (std::string_view type : model_types)
    if (!families().emplace(type, this).second) fail_internal("two families have the model type {}", type);
}

const DecoderFamily* DecoderFamily::find(std::string_view model_type) {
  const auto at = families().find(model_type);
  return at == families().end() ? nullptr : at->second;
}

DecoderConfig DecoderFamily::read(const JsonField& config) const {
  const auto type = config.find("model_type");
  const json::Value whole = over_class_defaults(config.value(), type ? type->as_string() : "");
  return read_(JsonField(whole, config.place()));
}

json::Value DecoderFamily::write(const DecoderConfig& config) const {
  if (!write_) fail_internal("a family that is only read has classes in the table of folders");
  return write_(config);
}

std::vector<std::string_view> DecoderFamily::model_types() {
  std::vector<std::string_view> types;
  for (const auto& [type, family] : families()) types.push_back(type);
  return types;
}

}  // namespace rlx
