#include "models/decoder_family.h"

#include <map>

namespace rlx {
namespace {

std::map<std::string_view, const DecoderFamily*>& families() {
  static std::map<std::string_view, const DecoderFamily*> all;
  return all;
}

}  // namespace

DecoderFamily::DecoderFamily(std::initializer_list<std::string_view> model_types, Read read, Names names) : read_(read), names_(names) {
  for (std::string_view type : model_types)
    if (!families().emplace(type, this).second) fail_internal("two families have the model type {}", type);
}

const DecoderFamily* DecoderFamily::find(std::string_view model_type) {
  const auto at = families().find(model_type);
  return at == families().end() ? nullptr : at->second;
}

std::vector<std::string_view> DecoderFamily::model_types() {
  std::vector<std::string_view> types;
  for (const auto& [type, family] : families()) types.push_back(type);
  return types;
}

}  // namespace rlx
