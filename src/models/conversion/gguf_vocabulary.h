#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "formats/gguf/gguf_metadata.h"

namespace rlx {

/// Writes the tokenizer of a folder in Hugging Face's layout (tokenizer.json or tokenizer.model, tokenizer_config.json,
/// chat_template.jinja) as the keys tokenizer.*; nothing where there is none. Ids below `vocab_size` that no token has are filled up; added
/// tokens from there on are left out. Returns the tokens of which GGUF files cannot say all, such as "<mask> (lstrip)". Throws Error naming
/// the file and the field for a kind of tokenizer that GGUF files do not know.
std::vector<std::string> describe_tokenizer(const std::filesystem::path& folder, std::int64_t vocab_size, GgufMetadata& metadata);

}  // namespace rlx
