#pragma once
#include "formats/json/json.h"
#include "models/config/decoder_config.h"

namespace rlx {

/// The first of the ropes, if there is one, in the older spelling. Llama 3's and Phi 3's are told apart by their factors.
void write_rope(const DecoderConfig& config, json::Value& out);

}  // namespace rlx
