#include "models/families/encoders/text_head.h"

#include <map>
#include <utility>

#include "base/names.h"
#include "formats/gguf/gguf.h"
#include "models/config/config_field.h"
#include "rlx/error.h"

namespace rlx {
namespace {

bool is_made_for(const JsonField& config, std::string_view ending) {
  const auto architectures = config.find("architectures");
  if (!architectures) return false;
  bool found = false;
  for (const JsonField& name : architectures->items()) found |= name.as_string().ends_with(ending);
  return found;
}

std::vector<std::string> usual_names(std::int64_t count) {
  std::vector<std::string> names;
  for (std::int64_t i = 0; i < count; ++i) names.push_back(fmt::format("LABEL_{}", i));
  return names;
}

}  // namespace

bool predicts_words(const JsonField& config) { return is_made_for(config, "ForMaskedLM") || is_made_for(config, "ForPreTraining"); }

void read_labels(const JsonField& config, TextHead& head) {
  head.each_token = is_made_for(config, "ForTokenClassification");
  if (!head.each_token && !is_made_for(config, "ForSequenceClassification")) return;
  const auto labels = config.find("id2label");
  head.labels = labels ? static_cast<std::int64_t>(labels->value().size()) : size_or(config, "num_labels", 2);
  if (labels && (!labels->value().is_object() || head.labels == 0)) labels->refuse("expected an object with a name for each label");
}

std::vector<std::string> label_names(const JsonField& config, std::int64_t count) {
  const auto given = config.find("id2label");
  if (!given) return usual_names(count);
  std::map<std::string, JsonField> by_number;
  for (auto& [number, name] : given->members()) by_number.emplace(number, name);
  std::vector<std::string> names;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto found = by_number.find(std::to_string(i));
    names.push_back(found == by_number.end() ? given->at(std::to_string(i)).as_string() : found->second.as_string());
  }
  return names;
}

std::vector<std::string> label_names(const GgufFile& file, std::int64_t count) {
  const std::string key = fmt::format("{}.classifier.output_labels", file.value("general.architecture").string());
  const GgufValue* given = file.find_value(key);
  if (given == nullptr) return usual_names(count);
  std::vector<std::string> names;
  for (std::string_view name : given->strings()) {
    check_utf8(name, fmt::format("{}: {}", file.name(), key));
    names.emplace_back(name);
  }
  if (std::cmp_not_equal(names.size(), count)) fail("{}: {} has {} names for {} labels", file.name(), key, names.size(), count);
  return names;
}

}  // namespace rlx
