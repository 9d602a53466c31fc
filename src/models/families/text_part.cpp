#include "models/families/text_part.h"

#include "models/config/class_defaults.h"

namespace rlx {

DecoderConfig read_text_part(const JsonField& config, std::string_view model_type, DecoderConfig (*read)(const JsonField& text)) {
  const JsonField text = config.at("text_config");
  if (!text.value().is_object()) text.refuse("expected an object");
  const json::Value whole = over_class_defaults(text.value(), model_type);
  return read(JsonField(whole, text.place()));
}

WeightNames text_part_names(WeightNames names, std::string_view prefix) {
  names.prefix = prefix;
  for (std::string_view part : {"vision_tower", "multi_modal_projector", "model.visual"}) names.unused.push_back(part);
  return names;
}

}  // namespace rlx
