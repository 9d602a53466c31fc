#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include "formats/tensors/tensor_view.h"

namespace rlx::quantized {

/// The scales of a matrix, by row and group of columns: numbers of a tensor of f16, bf16 or f32.
class Scales {
 public:
  /// Throws Error naming a tensor of another type. Strides count elements; the tensor's bytes must live as long.
  Scales(const TensorView& tensor, std::int64_t row_stride, std::int64_t group_stride);

  float at(std::int64_t row, std::int64_t group) const;
  /// Whether all scales of rows and groups are numbers that f16 holds exactly.
  bool are_halves(std::int64_t rows, std::int64_t groups) const;

 private:
  const std::byte* bytes_;
  DType dtype_;
  std::int64_t row_stride_, group_stride_;
};

/// Writes the f16 that is nearest to a value of the tensor. Throws Error naming the tensor for a finite value that f16 does not reach.
void put_half(const std::string& tensor, float value, std::byte* to);

}  // namespace rlx::quantized
