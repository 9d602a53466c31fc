#pragma once
#include <string_view>

#include "formats/gguf/gguf_metadata.h"
#include "models/config/decoder_config.h"

namespace rlx {

/// The keys that describe the model: sizes, rope, scales, experts. `read_gguf_decoder` is its inverse.
void describe_model(const DecoderConfig& config, std::string_view architecture, GgufMetadata& metadata);

class ModelFolder;

/// The keys that only encoders have: how a folder's modules.json pools, windows to both sides, types of tokens, labels of a classifier.
/// Throws Error for what GGUF files cannot say.
void describe_encoder(const ModelFolder& folder, const DecoderConfig& config, std::string_view architecture, GgufMetadata& metadata);

/// Of a model that continues texts the keys that say how its folder's modules.json pools, where there is one. Throws as the one above.
void describe_pooling(const ModelFolder& folder, const DecoderConfig& config, std::string_view architecture, GgufMetadata& metadata);

}  // namespace rlx
