#pragma once
#include <filesystem>

#include "models/tokenizer/tokenizer.h"

namespace rlx {

/// Opens the tokenizer of a model: a file `tokenizer.json`, `tokenizer.model` (sentencepiece), `tekken.json` or `*.gguf`, told apart by
/// what they hold, or a folder with one of them (the first in this order). Throws Error naming the file and what is wrong.
Tokenizer open_tokenizer(const std::filesystem::path& path);

}  // namespace rlx
