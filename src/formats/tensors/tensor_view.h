#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/array.h"
#include "rlx/dtype.h"

namespace rlx {

/// The most dimensions that a file may give a tensor; numpy's own limit.
inline constexpr std::size_t max_file_rank = 64;

struct BlockFormat;

/// A named tensor whose bytes belong to someone else, usually a mapped file: little-endian, row-major, without gaps.
/// The bytes need not be aligned for the dtype. Read elements through memcpy or an Array, never through a cast pointer.
struct TensorView {
  std::string name;
  DType dtype = f32;  ///< of packed data f32, to which it decodes
  std::vector<std::int64_t> shape;
  std::span<const std::byte> data;
  const BlockFormat* format = nullptr;  ///< of a tensor in a GGUF file; each row is whole blocks of it
  /// Of a tensor that its file holds in another form, and that has no data: writes rows first..first + count as they are described here.
  /// A row is what lies along the last axis. Several threads may call it.
  std::function<void(std::int64_t first, std::int64_t count, std::byte* rows)> make_rows = {};
};

/// Whether the data is blocks of several values, to be decoded, and not elements of the dtype.
bool is_packed(const TensorView& tensor);

/// The array's bytes under a name; the array must outlive the view.
TensorView view_of(std::string name, const Array& array);

/// "f32[2,4]", for messages.
std::string type_text(DType dtype, std::span<const std::int64_t> shape);

/// Bytes of a dense tensor. Throws Error "{what}: shape ..." when a dimension is negative, the rank is above `max_file_rank` or
/// the size leaves 63 bits, even where a later dimension is 0.
std::int64_t dense_bytes(DType dtype, std::span<const std::int64_t> shape, std::string_view what);

/// Bytes of a tensor of that format. Throws Error "{what}: ..." when rows are not whole blocks or the size leaves 63 bits.
std::size_t block_bytes(const BlockFormat& format, std::span<const std::int64_t> shape, std::string_view what);

/// The bytes of the tensor's elements or blocks. Of a tensor whose reader checked its size.
std::size_t byte_count(const TensorView& tensor);

/// How many rows the tensor has; 0 where a row holds nothing.
std::int64_t row_count(const TensorView& tensor);

/// The bytes of rows first..first + count: the tensor's own, or made in `made`.
std::span<const std::byte> row_bytes(const TensorView& tensor, std::int64_t first, std::int64_t count, std::vector<std::byte>& made);

/// The tensor as an Array that `owner` keeps alive; without a copy when the bytes are aligned for the dtype. Packed data is decoded.
Array to_array(const TensorView& tensor, std::shared_ptr<const void> owner);

}  // namespace rlx
