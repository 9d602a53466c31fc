#include "formats/tensors/tensor_view.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/ranges.h>

#include "base/checked.h"
#include "quant/block_format.h"

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

std::size_t block_bytes(const BlockFormat& format, std::span<const std::int64_t> shape, std::string_view what) {
  const std::int64_t row = shape.empty() ? 1 : shape.back();
  if (row % format.values != 0) fail("{}: rows of {} values are no multiple of a block of {}, {}", what, row, format.name, format.values);
  const auto count =
      std::any_of(shape.begin(), shape.end(), [](std::int64_t size) { return size < 0; }) ? std::nullopt : checked_product(shape);
  const auto bytes = count ? checked_mul(*count / format.values, format.bytes) : std::nullopt;
  if (!bytes || !checked_mul(*count, std::int64_t{16}))
    fail("{}: shape [{}] has more elements than 64 bits count", what, fmt::join(shape, ", "));
  return static_cast<std::size_t>(*bytes);
}

bool is_packed(const TensorView& tensor) { return tensor.format && tensor.format->values > 1; }

std::size_t byte_count(const TensorView& tensor) {
  if (!tensor.make_rows) return tensor.data.size();
  if (is_packed(tensor)) return block_bytes(*tensor.format, tensor.shape, tensor.name);
  return static_cast<std::size_t>(dense_bytes(tensor.dtype, tensor.shape, tensor.name));
}

std::int64_t row_count(const TensorView& tensor) {
  if (tensor.shape.empty()) return 1;
  if (tensor.shape.back() == 0) return 0;
  std::int64_t rows = 1;
  for (std::int64_t size : std::span(tensor.shape).first(tensor.shape.size() - 1)) rows *= size;
  return rows;
}

std::span<const std::byte> row_bytes(const TensorView& tensor, std::int64_t first, std::int64_t count, std::vector<std::byte>& made) {
  const std::size_t row = byte_count(tensor) / static_cast<std::size_t>(std::max<std::int64_t>(row_count(tensor), 1));
  const std::size_t bytes = row * static_cast<std::size_t>(count);
  if (!tensor.make_rows) return tensor.data.subspan(row * static_cast<std::size_t>(first), bytes);
  made.resize(bytes);
  tensor.make_rows(first, count, made.data());
  return made;
}

Array to_array(const TensorView& tensor, std::shared_ptr<const void> owner) {
  if (is_packed(tensor)) {
    Array decoded(f32, tensor.shape);
    std::vector<std::byte> made;
    tensor.format->decode(row_bytes(tensor, 0, row_count(tensor), made).data(), decoded.mutable_values<float>().data(), decoded.size());
    return decoded;
  }
  if (!tensor.make_rows && reinterpret_cast<std::uintptr_t>(tensor.data.data()) % alignment_of(tensor.dtype) == 0)
    return Array(tensor.dtype, tensor.shape, tensor.data, std::move(owner));
  Array copy(tensor.dtype, tensor.shape);
  if (tensor.make_rows) tensor.make_rows(0, row_count(tensor), copy.mutable_bytes().data());
  else std::copy(tensor.data.begin(), tensor.data.end(), copy.mutable_bytes().begin());
  return copy;
}

}  // namespace rlx
