#pragma once
#include <cstddef>
#include <filesystem>
#include <functional>

#include "formats/checkpoint.h"
#include "rlx/dtype.h"

namespace rlx {

/// Writes the tensors of a checkpoint to one safetensors file, under their names: floats, packed ones too, as `dtype` (f32, f16 or bf16),
/// integers as they are. Memory does not grow with the model. `progress` counts values.
/// Throws Error naming the tensor and the place of a value that `dtype` cannot hold; the target is then as it was.
void write_dense(const Checkpoint& checkpoint, const std::filesystem::path& target, DType dtype,
                 const std::function<void(std::size_t done, std::size_t total)>& progress = {});

}  // namespace rlx
