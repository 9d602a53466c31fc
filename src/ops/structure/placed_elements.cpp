// Elements stored at positions that are computed.
#include "ops/structure/placed_elements.h"

#include <algorithm>

#include "ops/broadcasting.h"
#include "rlx/ops.h"

namespace rlx {
namespace {

struct Place {
  static constexpr OpKind kind = OpKind::primitive;
  static constexpr std::string_view name = "place";
  static constexpr std::string_view formula =
      "element i of x (operand 0) at position to[i] (operand 1) of the last axis, `fill` elsewhere; positions are distinct and inside";
  static constexpr std::string_view not_differentiable = "only expansions are made of it";
  static constexpr std::array<int, 1> integer_operands{1};
  Dims size = {1};
  double fill = 0;
  static auto fields() { return Fields<&Place::size, &Place::fill>{}; }
  static Type infer(const Place& op, const Type& x, const Type& to) {
    if (op.size.size() != 1 || x.rank() == 0 || !(x.shape == to.shape) || !is_integer(to.dtype))
      fail("rlx.place: x is {}, positions are {} (allowed: integers in the shape of x, which has an axis)", x.to_string(), to.to_string());
    Type result = x;
    result.shape.back() = op.size[0];
    return result;
  }
  static Destination destination(const Place& op, std::span<const Type>, const Type& result, std::vector<Index> at, const ReadIndex& read) {
    at.back() = read(1, at, result.shape.back());
    return {std::move(at), op.fill};
  }
  static void evaluate(const Place& op, std::span<const Array> x, std::span<Array> y) {
    const std::int64_t length = x[0].shape().back(), size = y[0].shape().back();
    for (std::int64_t i = 0; i < y[0].size(); ++i) y[0].set_double(i, op.fill);
    for (std::int64_t i = 0; i < x[0].size(); ++i) {
      const std::int64_t to = i / length * size + x[1].get_int(i);
      if (is_integer(x[0].dtype())) y[0].set_uint(to, x[0].get_uint(i));
      else y[0].set_complex(to, x[0].get_complex(i));
    }
  }
  static Values batch(const Place& op, std::span<const Value> x, const std::vector<bool>& batched, const Dim& size) {
    Values both(x.begin(), x.end());
    Dims shape = x[batched[0] ? 0 : 1].shape();
    shape.front() = size;
    for (Value& v : both) v = broadcast_to(v, shape);
    return {place(both[0], both[1], op.size[0], op.fill)};
  }
  // Random positions are distinct where there is one.
  static std::vector<Sample> samples() {
    std::vector<Sample> all;
    for (DType t : {f32, bf16, i32, u8, c64}) all.push_back({{{{t, {5, 1}}, 0, 2}, {{i32, {5, 1}}, 0, 2}}, attrs_of(Place{{3}, 1})});
    all.push_back({{{{f32, {1}}}, {{i64, {1}}, 0, 0}}, attrs_of(Place{{1}, 0})});
    return all;
  }
};
const Op<Place> place_op;

}  // namespace

Value place(Value x, Value to, const Dim& size, double fill) { return place_op({{size}, fill}, x, to); }

}  // namespace rlx
