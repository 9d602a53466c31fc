#pragma once
#include <cstdint>
#include <vector>

#include "rlx/array.h"
#include "rlx/type.h"

namespace rlx {

/// The type of an array: all its sizes are numbers.
inline Type type_of(const Array& array) { return {array.dtype(), Dims(array.shape().begin(), array.shape().end())}; }

/// The shape of the arrays of a type. Throws Error where a size has symbols.
inline std::vector<std::int64_t> static_shape(const Type& type) {
  std::vector<std::int64_t> shape;
  for (const Dim& dim : type.shape) shape.push_back(dim.value());
  return shape;
}

/// Bytes of the elements of such an array. Throws Error as its constructor does.
std::int64_t array_bytes(DType dtype, const std::vector<std::int64_t>& shape);

}  // namespace rlx
