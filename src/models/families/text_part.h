#pragma once
#include "formats/json/json_field.h"
#include "models/config/decoder_config.h"
#include "models/families/weight_names.h"

namespace rlx {

/// The text model of a config that also describes what reads pictures: its `text_config`, over what the class of `model_type` takes
/// for fields that it leaves out.
DecoderConfig read_text_part(const JsonField& config, std::string_view model_type, DecoderConfig (*read)(const JsonField& text));
/// The text model's names inside such a checkpoint, behind `prefix`; what reads pictures is of no use.
WeightNames text_part_names(WeightNames names, std::string_view prefix);

}  // namespace rlx
