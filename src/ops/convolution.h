#pragma once
#include "ir/op.h"
#include "rlx/op_types.h"

namespace rlx {

/// The attributes of a `conv`.
ConvOptions conv_options(const Attrs& attrs);

/// Whether a `conv` of these attributes and operand types is a dot: not where it has groups, holes in x, a stride over a symbolic size, or
/// no products to add up.
bool is_dot_of_windows(const Attrs& attrs, const Type& x, const Type& w);

/// Such a `conv` as a dot of the windows of x with w, for kernels of matrix products: rows are positions of the result, columns output
/// channels. The elements of windows and w are widened to `wide` right before they are multiplied, so what is stored is as narrow as x.
Value conv_as_dot(const Attrs& attrs, Value x, Value w, DType wide);

}  // namespace rlx
