#pragma once
#include <array>
#include <filesystem>

#include "text/tokenizer/tokenizer.h"

namespace rlx {

/// Its files in a model's folder, the first that is there.
inline constexpr std::array tokenizer_file_names = {"tokenizer.json", "tokenizer.model", "tekken.json"};

/// Opens the tokenizer of a model: a file `tokenizer.json`, `tokenizer.model` (sentencepiece), `tekken.json` or `*.gguf`, told apart by
/// what they hold, or a folder with one of them (the first in this order). Throws Error naming the file and what is wrong.
Tokenizer open_tokenizer(const std::filesystem::path& path);

}  // namespace rlx
