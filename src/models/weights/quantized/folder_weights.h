#pragma once
#include <filesystem>
#include <string_view>

#include "formats/checkpoint.h"

namespace rlx {

/// The weights of a model's folder, or of a file, as Checkpoint::open finds them. Where config.json has a quantization_config (GPTQ, AWQ,
/// fp8, compressed-tensors), the tensors that make up a matrix are one, `<layer>.weight` (outputs, inputs): blocks that hold its numbers
/// exactly, or F16. Its rows are made when they are read. Throws Error naming the file and what is missing, malformed or not supported.
Checkpoint open_weights(const std::filesystem::path& path);

/// Whether the tensor is a bias of zeros beside a matrix whose rows are made: some writers add one to every quantized layer.
bool is_idle_bias(const Checkpoint& checkpoint, std::string_view tensor);

}  // namespace rlx
