#pragma once
#include "ir/op.h"
#include "rlx/op_types.h"

namespace rlx {

/// The attributes of a `conv`.
ConvOptions conv_options(const Attrs& attrs);

/// The type of its result. Throws Error for operands that do not fit.
Type conv_result(const Attrs& attrs, const Type& x, const Type& w);

/// What computes a `conv` of these attributes and operand types.
///   dot    a matrix product of windows of x with w, for each group
///   sums   of shifted elements of x times their weights, where groups are so small that no matrix product is worth its name: depthwise
///   loop   the op itself: with groups of the batch, holes in x, a stride over a symbolic size, or no products to add up
enum class ConvForm : std::uint8_t { dot, sums, loop };
ConvForm conv_form(const Attrs& attrs, const Type& x, const Type& w);

/// Such a `conv` as a dot of the windows of x with w, for kernels of matrix products: rows are positions of the result, columns output
/// channels of a group. The elements of windows and w are widened to `wide` right before they are multiplied, so what is stored is as
/// narrow as x.
Value conv_as_dot(const Attrs& attrs, Value x, Value w, DType wide);

/// Such a `conv` as a sum over the places of a kernel, each a product of elements of x that lie as those of the result do with one weight
/// for each channel: loops over them are vector code. Widened as by conv_as_dot, and summed in the type that accumulates `wide`.
Value conv_as_sums(const Attrs& attrs, Value x, Value w, DType wide);

}  // namespace rlx
