#pragma once
#include "formats/json/json_field.h"
#include "models/config/decoder_config.h"

namespace rlx {

/// The sizes of a config in GPT-2's spelling: n_embd, n_head, n_layer, n_inner.
DecoderConfig read_gpt2_sizes(const JsonField& config);

}  // namespace rlx
