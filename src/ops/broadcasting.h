#pragma once
#include <string_view>
#include <utility>

#include "rlx/graph.h"
#include "rlx/ops.h"  // broadcast_to

namespace rlx {

/// The shape that NumPy's rule gives two shapes; throws Error naming `op` when they do not fit.
Dims broadcast_shapes(std::string_view op, const Dims& a, const Dims& b);

/// Both values with the promoted dtype and the common shape.
std::pair<Value, Value> match(std::string_view op, Value a, Value b);

/// A number beside x in `op`, a scalar of x's element type; throws Error when that cannot hold it, as an integer cannot hold 0.5.
Value literal(std::string_view op, Value x, double value);

/// The type sums of `t` are kept in: f32 for narrower floats, i32 for narrower integers, else t.
DType accumulation_type(DType t);

}  // namespace rlx
