#pragma once
#include "models/config/decoder_config.h"
#include "models/families/gguf/gguf_keys.h"

namespace rlx {

/// How queries and keys turn, where `c` has the size of a head and the context. Throws Error naming the key or the tensor.
RopeOptions read_gguf_rope(const GgufConfig& config, const DecoderConfig& c, RopeStyle style);

/// Of latent attention stretched by YaRN: scores take the factor that sines and cosines otherwise have, squared.
void read_gguf_yarn_scale(const GgufConfig& config, DecoderConfig& c);

}  // namespace rlx
