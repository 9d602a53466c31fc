#pragma once
#include <string_view>

#include "backends/coreml/call.h"

namespace rlx::coreml {

// Operations as rules write them: shapes follow from the operands. Immediate numbers have no axes.

/// A size, and a list of them, as an operation reads it: what stands there, or what a run computes from the shapes of its inputs.
Argument size(Body& out, const Dim& dim);
Argument sizes(Body& out, const Dims& dims);
/// 0, 1, ... n - 1, of i32.
Tensor line(Body& out, const Dim& n);

Tensor unary(Body& out, std::string_view type, const Tensor& x);
Tensor binary(Body& out, std::string_view type, const Argument& a, const Argument& b);
/// The same with a result of bool, and of bools.
Tensor compare(Body& out, std::string_view type, const Argument& a, const Argument& b);
Tensor select(Body& out, const Tensor& condition, const Argument& a, const Argument& b);
Tensor logical_not(Body& out, const Tensor& a);
Tensor convert(Body& out, const Tensor& x, Element element);
Tensor reshape(Body& out, const Tensor& x, const Dims& shape);
Tensor transpose(Body& out, const Tensor& x, const Sizes& perm);
/// The permutation back.
Sizes inverse(const Sizes& perm);
/// Elements begin, begin + stride, ... below end along one axis.
Tensor cut(Body& out, const Tensor& x, std::size_t axis, const Dim& begin, const Dim& end, std::int64_t stride = 1);
Tensor concat(Body& out, const Tensors& parts, std::int64_t axis);
Tensor reversed(Body& out, const Tensor& x, const Sizes& axes);
/// `like`'s elements, all of one value.
Tensor filled(Body& out, Element element, const Dims& shape, double value);
/// Elements of x at places along an axis, all of which are inside.
Tensor take(Body& out, const Tensor& x, const Tensor& places, std::int64_t axis);
/// Updates put at places along axis 0, all of which are inside, in a mode of MIL's scatter.
Tensor put(Body& out, const Tensor& x, const Tensor& places, const Tensor& updates, const char* mode);
/// A reduction of MIL over axes, which disappear.
Tensor reduced(Body& out, const std::string& kind, const Tensor& x, const Sizes& axes);
/// [..., rows, columns] times the same of y, where either may stand transposed.
Tensor matmul(Body& out, const Tensor& x, const Tensor& y, bool transpose_x = false, bool transpose_y = false);
/// Bools as integers: operations that move elements do not take them everywhere.
inline Tensor movable(Body& out, const Tensor& x) { return x.element == Element::boolean ? convert(out, x, Element::i32) : x; }

/// x repeated along axes of size 1, and along axes before its own.
Tensor stretched(Body& out, const Tensor& x, const Dims& shape);
/// Fill values between the elements along an axis.
Tensor spread(Body& out, const Tensor& x, std::size_t axis, std::int64_t between, double value);
/// Fill values at both ends of an axis, where negative counts cut off.
Tensor padded(Body& out, const Tensor& x, std::size_t axis, const Dim& lo, const Dim& hi, double value);

/// A number of the elements of x.
inline Immediate number(const Tensor& x, double value) { return {x.element, value}; }

inline Tensor is_nan(Body& out, const Tensor& x) { return compare(out, "not_equal", x, x); }
inline Tensor clamped(Body& out, const Tensor& x, const Argument& low, const Argument& high) {
  return binary(out, "minimum", binary(out, "maximum", x, low), high);
}

/// The bytes of an integer, the lowest first, each 0..255; the highest of four has the sign of the integer of these.
Tensors bytes_of(Body& out, const Tensor& x, int bits);
Tensor integer_of(Body& out, const Tensors& bytes);
/// What an operator makes of the bits of bytes: CoreML has none of these, so that all pairs stand in a table.
template <class Operator>
Tensor looked_up(Body& out, const Tensor& a, const Tensor& b) {
  const Tensor table = out.made_once(typeid(Operator).name(), [&] {
    Sizes found;
    for (int x = 0; x < 256; ++x)
      for (int y = 0; y < 256; ++y) found.push_back(Operator()(x, y));
    return Tensors{out.constant({256 * 256}, found)};
  })[0];
  return take(out, table, binary(out, "add", binary(out, "mul", a, number(a, 256)), b), 0);
}
/// What narrow integers keep of a result in 32 bits.
Tensor wrapped(Body& out, const Tensor& x, DType dtype);

}  // namespace rlx::coreml
