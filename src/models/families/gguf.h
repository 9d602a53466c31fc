#pragma once
#include "formats/gguf.h"
#include "models/decoder.h"

namespace rlx {

/// The language model that a GGUF file holds: sizes from the metadata of its architecture, axes from the tensors that it has.
/// Throws Error naming the file and the key for an architecture that is not supported, and for what is missing or not allowed.
DecoderConfig read_gguf_decoder(const GgufFile& file);
/// GGUF's names of tensors, which all architectures share; queries, keys and values, and gate and up, may be one tensor each.
WeightNames gguf_names(bool fused_attention, bool fused_feed_forward);
WeightNames gguf_names(const GgufFile& file, const DecoderConfig& config);

}  // namespace rlx
