#pragma once
#include <mlx/mlx.h>

#include "rlx/array.h"
#include "rlx/type.h"

namespace rlx::mlx {

namespace mx = ::mlx::core;

/// Elements as MLX has them; those that it lacks are carried as bytes: see array_of.
mx::Dtype dtype_of(DType dtype);
/// Whether MLX computes with such elements on a device.
bool has(DType dtype, const mx::Device& device);

/// The sizes as MLX has them. Throws Error for one beyond 31 bits.
mx::Shape shape_of(const std::vector<std::int64_t>& sizes);

/// Throws Error for an array beyond the machine's memory: on a CPU MLX writes to address 0 where there is none.
void check_memory(const mx::array& result, const mx::Device& device);

/// The elements, without a copy where MLX can read the host's memory; it never writes there. 8-bit floats are bytes of the same shape,
/// packed integers a list of bytes, c128 pairs of f64 along a last axis.
mx::array array_of(const Array& array, const mx::Device& device);
/// An array of this type and these sizes as `array_of` gives it.
mx::Shape carried_shape(DType dtype, const std::vector<std::int64_t>& sizes);

/// What an evaluated array of rows without gaps holds, without a copy: it lives as long as the result.
Array array_from(const mx::array& evaluated, DType dtype, std::vector<std::int64_t> sizes);
/// The MLX array that an array of `array_from` shows; null for any other.
mx::array* shown_by(const Array& array);

}  // namespace rlx::mlx
