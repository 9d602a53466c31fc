#pragma once
#include "formats/gguf/gguf.h"
#include "models/config/decoder_config.h"
#include "models/families/weight_names.h"

namespace rlx {

/// What is of encoders alone in a GGUF file, after the axes that all architectures share: norms behind blocks, windows to both sides, types
/// of tokens, a classifier. Throws Error naming the file and the key.
void read_gguf_encoder(const GgufFile& file, DecoderConfig& config);
/// The names of tensors that only encoders have.
void add_gguf_encoder_names(WeightNames& names);
/// Those of the layers behind the pooling, which a graph of states alone does not have.
void add_gguf_dense_names(WeightNames& names);

}  // namespace rlx
