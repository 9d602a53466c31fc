#pragma once
#include <string_view>

#include "backends/coreml/call.h"

namespace rlx::coreml {

// Operations as rules write them: shapes follow from the operands. Immediate numbers have no axes.

Tensor unary(Body& out, std::string_view type, const Tensor& x);
Tensor binary(Body& out, std::string_view type, const Argument& a, const Argument& b);
/// The same with a result of bool.
Tensor compare(Body& out, std::string_view type, const Argument& a, const Argument& b);
Tensor select(Body& out, const Tensor& condition, const Argument& a, const Argument& b);
Tensor logical(Body& out, std::string_view type, const Tensor& a, const Tensor& b);
Tensor logical_not(Body& out, const Tensor& a);
Tensor convert(Body& out, const Tensor& x, Element element);
Tensor reshape(Body& out, const Tensor& x, const Sizes& shape);
Tensor transpose(Body& out, const Tensor& x, const Sizes& perm);
/// Elements begin, begin + stride, ... below end along one axis.
Tensor cut(Body& out, const Tensor& x, std::size_t axis, std::int64_t begin, std::int64_t end, std::int64_t stride = 1);
Tensor concat(Body& out, const Tensors& parts, std::int64_t axis);
/// `like`'s elements, all of one value.
Tensor filled(Body& out, Element element, const Sizes& shape, double value);
/// Elements of x at places along an axis, all of which are inside.
Tensor take(Body& out, const Tensor& x, const Tensor& places, std::int64_t axis);

/// x repeated along axes of size 1, and along axes before its own.
Tensor stretched(Body& out, const Tensor& x, const Sizes& shape);
/// Fill values between the elements along an axis.
Tensor spread(Body& out, const Tensor& x, std::size_t axis, std::int64_t between, double value);
/// Fill values at both ends of an axis, where negative counts cut off.
Tensor padded(Body& out, const Tensor& x, std::size_t axis, std::int64_t lo, std::int64_t hi, double value);

/// A number of the elements of x.
inline Immediate number(const Tensor& x, double value) { return {x.element, value}; }

/// What narrow integers keep of a result in 32 bits.
Tensor wrapped(Body& out, const Tensor& x, DType dtype);
/// Operands of f16 are added in f32.
inline Element sum_element(Element element) { return element == Element::f16 ? Element::f32 : element; }

}  // namespace rlx::coreml
