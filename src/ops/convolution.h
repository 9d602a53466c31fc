#pragma once
#include <optional>

#include "ir/op.h"

namespace rlx {

/// A `conv` of these attributes as a dot of the windows of x with w, for kernels of matrix products: rows are positions of the result,
/// columns output channels. Nothing where it has groups, holes in x, a stride over a symbolic size, or no products to add up.
std::optional<Value> conv_as_dot(const Attrs& attrs, Value x, Value w);

}  // namespace rlx
