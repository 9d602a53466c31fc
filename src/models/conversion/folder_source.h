#pragma once
#include <filesystem>

#include "models/conversion/model_source.h"

namespace rlx {

/// The folder of a language model or an encoder in Hugging Face's layout as it is to be written to a GGUF file: names, order of rows and
/// metadata as other readers of the architecture expect them. Matrices keep their type, vectors become F32. Throws Error naming the file
/// and the field, the tensors that are missing, or those that the architecture has no use for.
ModelSource source_of_folder(const std::filesystem::path& folder);

}  // namespace rlx
