#pragma once
#include <cstdint>
#include <vector>

#include "formats/gguf/gguf.h"

namespace rlx {

class ModelFolder;

/// The tokens that end an answer: eos_token_id of generation_config.json, which knows better, or of config.json.
std::vector<std::int32_t> end_tokens_of(const ModelFolder& folder);
/// Those of a GGUF file: of sequences, turns and messages.
std::vector<std::int32_t> end_tokens_of(const GgufFile& file);

}  // namespace rlx
