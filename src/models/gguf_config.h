#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "formats/gguf_metadata.h"
#include "models/decoder.h"

namespace rlx {

/// How GGUF files keep an architecture.
struct GgufFamily {
  std::string_view model_type;    ///< of Hugging Face's config
  std::string_view architecture;  ///< general.architecture
  bool neighbours_turn = false;   ///< rows of queries and keys are reordered, so that elements that turn together are neighbours
};

/// Throws Error that lists those that are known.
const GgufFamily& gguf_family(std::string_view model_type);
/// The families that files keep as that architecture; none for one that only files have.
std::vector<GgufFamily> gguf_families_of(std::string_view architecture);
/// The row of a folder's queries or keys that stands at `row` of a file where neighbours turn together.
std::int64_t row_of_halves(std::int64_t row, std::int64_t head_size);

/// The keys that describe the model: sizes, rope, scales, experts. `read_gguf_decoder` is its inverse.
void describe_model(const DecoderConfig& config, const GgufFamily& family, GgufMetadata& metadata);

class ModelFolder;

/// The keys that only encoders have: how a folder's modules.json pools, windows to both sides, types of tokens, labels of a classifier.
/// Throws Error for what GGUF files cannot say.
void describe_encoder(const ModelFolder& folder, const DecoderConfig& config, const GgufFamily& family, GgufMetadata& metadata);

/// A divisor for each frequency of rope, as llama.cpp stores those of Llama 3.
std::vector<float> llama3_factors(const RopeOptions& rope);

}  // namespace rlx
