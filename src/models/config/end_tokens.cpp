#include "models/config/end_tokens.h"

#include <filesystem>
#include <limits>
#include <string_view>

#include "models/config/model_folder.h"

namespace rlx {
namespace {

/// One id, or a list of them.
std::vector<std::int32_t> read_end_tokens(const JsonField& config) {
  const auto field = config.find("eos_token_id");
  std::vector<std::int32_t> ids;
  if (field && field->value().is_array()) {
    for (const JsonField& item : field->items()) ids.push_back(item.as_id());
  } else if (field) {
    ids.push_back(field->as_id());
  }
  return ids;
}

}  // namespace

std::vector<std::int32_t> end_tokens_of(const ModelFolder& folder) {
  const std::filesystem::path own = folder.path() / "generation_config.json";
  std::error_code error;
  if (std::filesystem::exists(own, error)) {
    auto ids = read_end_tokens(ConfigFile::open(own).root());
    if (!ids.empty()) return ids;
  }
  return read_end_tokens(folder.config());
}

std::vector<std::int32_t> end_tokens_of(const GgufFile& file) {
  std::vector<std::int32_t> ids;
  for (std::string_view key : {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"})
    if (const GgufValue* value = file.find_value(key))
      ids.push_back(static_cast<std::int32_t>(value->integer(0, std::numeric_limits<std::int32_t>::max())));
  return ids;
}

}  // namespace rlx
