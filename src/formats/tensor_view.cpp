#include "formats/tensor_view.h"

#include <algorithm>
#include <utility>

#include <fmt/ranges.h>

#include "base/checked.h"

namespace rlx {
namespace {

/// Alignment that element access needs; a complex number is accessed as two parts.
std::size_t alignment_of(DType dtype) {
  const auto bytes = static_cast<std::size_t>(std::max(1, info(dtype).bits / 8));
  return is_complex(dtype) ? bytes / 2 : bytes;
}

}  // namespace

TensorView view_of(std::string name, const Array& array) { return {std::move(name), array.dtype(), array.shape(), array.bytes()}; }

std::string type_text(DType dtype, std::span<const std::int64_t> shape) {
  return fmt::format("{}[{}]", name(dtype), fmt::join(shape, ","));
}

std::int64_t dense_bytes(DType dtype, std::span<const std::int64_t> shape, std::string_view what) {
  if (shape.size() > max_file_rank) fail("{}: shape has {} dimensions (allowed: 0..{})", what, shape.size(), max_file_rank);
  for (std::int64_t size : shape)
    if (size < 0) fail("{}: shape [{}] has the negative dimension {}", what, fmt::join(shape, ", "), size);
  const auto count = checked_product(shape);
  if (!count || !checked_mul(*count, std::int64_t{16}))
    fail("{}: shape [{}] has more elements than 64 bits count", what, fmt::join(shape, ", "));
  return bytes_for(dtype, *count);
}

Array to_array(const TensorView& tensor, std::shared_ptr<const void> owner) {
  if (reinterpret_cast<std::uintptr_t>(tensor.data.data()) % alignment_of(tensor.dtype) == 0)
    return Array(tensor.dtype, tensor.shape, tensor.data, std::move(owner));
  Array copy(tensor.dtype, tensor.shape);
  std::copy(tensor.data.begin(), tensor.data.end(), copy.mutable_bytes().begin());
  return copy;
}

}  // namespace rlx
