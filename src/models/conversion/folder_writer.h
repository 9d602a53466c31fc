#pragma once
#include <cstddef>
#include <filesystem>
#include <functional>
#include <vector>

#include "formats/gguf/gguf.h"
#include "rlx/dtype.h"

namespace rlx {

/// Writes the model of a GGUF file as a folder in Hugging Face's layout: config.json, model.safetensors with the family's names and order
/// of rows in `dtype` (f32, f16 or bf16), the tokenizer as far as metadata tell it (tokenizer.json or tokenizer.model, and
/// tokenizer_config.json), the modules of sentence-transformers of an encoder that says how it pools, and gives the names of these files.
/// The folder is made where there is none; its files appear together when all are written. Memory grows with the largest tensor. `progress`
/// counts values. Throws Error naming file, key or tensor for what has no form there, and for a file in the folder that readers would take
/// for a part of the model; then nothing is left behind, and files that were there stay.
std::vector<std::filesystem::path> write_model_folder(const GgufFile& file, const std::filesystem::path& folder, DType dtype,
                                                      const std::function<void(std::size_t done, std::size_t total)>& progress = {});

}  // namespace rlx
