#pragma once
#include "formats/json/json_field.h"
#include "models/config/decoder_config.h"
#include "models/families/weight_names.h"

namespace rlx {

/// What the configs of models of nothing but state spaces have in common. Widths are left to the caller.
DecoderConfig read_mamba_base(const JsonField& config, Mixer mixer);
/// What `read_mamba_base` reads, and the widths.
json::Value state_space_fields(const DecoderConfig& config);
/// Mamba's names of tensors.
WeightNames mamba_names(const DecoderConfig& config);

/// A size of a part, such as a head's: 1 to 65536, so that sums of products with other sizes fit 64 bits.
std::int64_t part_size(const JsonField& field);
/// The field `name` where it is a number; else, for "auto", a sixteenth of the model's size.
std::int64_t read_step_rank(const JsonField& config, std::string_view name, std::int64_t hidden_size);
/// `time_step_limit` where the config has it: [least, largest].
void read_step_limits(const JsonField& config, StateSpaceConfig& result);

}  // namespace rlx
