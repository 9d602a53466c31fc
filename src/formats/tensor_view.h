#pragma once
#include <cstddef>
#include <cstdint>
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

/// The tensor as an Array that `owner` keeps alive; without a copy when the bytes are aligned for the dtype. Packed data is decoded.
Array to_array(const TensorView& tensor, std::shared_ptr<const void> owner);

}  // namespace rlx
