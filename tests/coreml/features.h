#pragma once
#include <memory>

#include "coreml/evaluator.h"
#include "rlx/array.h"

namespace rlx::test {

/// What CoreML's arrays hold of an array: bools and integers as i32, u32 by its bits, bf16 as f32, and at least one axis.
inline Array as_feature(const Array& array) {
  const std::vector<std::int64_t> shape = array.rank() > 0 ? array.shape() : std::vector<std::int64_t>{1};
  const DType dtype = array.dtype() == bf16 ? f32 : is_float(array.dtype()) ? array.dtype() : i32;
  Array feature(dtype, shape);
  for (std::int64_t i = 0; i < array.size(); ++i)
    is_float(dtype) ? feature.set_double(i, array.get_double(i)) : feature.set_int(i, static_cast<std::int32_t>(array.get_int(i)));
  return feature;
}

}  // namespace rlx::test
