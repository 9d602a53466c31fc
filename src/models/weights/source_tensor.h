#pragma once
#include <cstdint>
#include <functional>

#include "formats/tensors/tensor_view.h"

namespace rlx {

/// A tensor that is to be written, whose values are read row by row.
struct SourceTensor {
  /// Name, shape and format as GGUF has them. `data` are its bytes in that format, or empty where they must be computed.
  TensorView view;
  /// Reads rows first..first + count (of the last axis; all axes before it count as rows) as f32. Called by several threads at once.
  std::function<void(std::int64_t first, std::int64_t count, float* values)> read_rows;
};

}  // namespace rlx
