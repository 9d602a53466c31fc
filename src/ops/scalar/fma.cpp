// The fused multiply-add: a product and a sum with one rounding.
#include <bit>
#include <cmath>

#include "ops/broadcasting.h"
#include "ops/scalar/scalar.h"
#include "rlx/ops.h"

namespace rlx {
namespace {

// product + z rounded to odd: the neighbour whose last bit is 1 where the sum is not exact. A second rounding, to a type with at least
// two bits fewer, then gives what one rounding would (Boldo and Melquiond 2008).
double sum_to_odd(double product, double z) {
  const double sum = product + z, other = sum - product, lost = (product - (sum - other)) + (z - other);
  if (!(lost > 0 || lost < 0) || (std::bit_cast<std::uint64_t>(sum) & 1) != 0) return sum;
  return std::nextafter(sum, lost > 0 ? INFINITY : -INFINITY);
}

double rounded_once(DType t, double x, double y, double z) {
  if (t == f64) return std::fma(x, y, z);
  if (t == f32) return std::fma(static_cast<float>(x), static_cast<float>(y), static_cast<float>(z));
  return sum_to_odd(x * y, z);  // the product of two narrow floats is exact
}

struct Fma {
  static constexpr OpKind kind = OpKind::scalar;
  static constexpr std::string_view name = "fma";
  static constexpr ScalarOp scalar = ScalarOp::fma;
  static constexpr std::string_view formula = "x * y + z, rounded once";
  static auto fields() { return Fields<>{}; }
  static Type infer(const Fma&, const Type& x, const Type& y, const Type& z) {
    if (x.dtype != f64 && x.dtype != f32 && x.dtype != f16 && x.dtype != bf16)
      fail("rlx.fma: {} is not allowed (allowed: f64, f32, f16, bf16)", rlx::name(x.dtype));
    for (const Type& other : {y, z})
      if (!(other == x)) fail("rlx.fma: operands differ: {} and {}", x.to_string(), other.to_string());
    return x;
  }
  static void evaluate(const Fma&, std::span<const Array> x, std::span<Array> y) {
    for (std::int64_t i = 0; i < y[0].size(); ++i)
      y[0].set_double(i, rounded_once(y[0].dtype(), x[0].get_double(i), x[1].get_double(i), x[2].get_double(i)));
  }
  static Values jvp(const Fma&, std::span<const Value> x, std::span<const Value>, std::span<const Value> dx) {
    Value total;
    const auto add_term = [&](Value term) { total = total ? total + term : term; };
    if (dx[0]) add_term(dx[0] * x[1]);
    if (dx[1]) add_term(x[0] * dx[1]);
    if (dx[2]) add_term(dx[2]);
    return {total};
  }
  static std::vector<Sample> samples() {
    std::vector<Sample> all;
    for (DType t : {f32, f64, f16, bf16})
      for (const Dims& shape : {Dims{}, Dims{5}, Dims{2, 3, 4}}) all.push_back({std::vector<Sample::Operand>(3, {{t, shape}, -4, 4}), {}});
    return all;
  }
};
const Op<Fma> fma_op;

}  // namespace

/// x * y + z with one rounding at the end, for f64, f32, f16 and bf16. Operands are promoted to one type and broadcast to one shape, that
/// of the result. Throws Error for other types: integers and complex numbers have x * y + z.
Value fma(Operand x, Operand y, Operand z) {
  std::tie(x, y) = match("fma", x, y);
  std::tie(x, z) = match("fma", x, z);
  return fma_op({}, x, broadcast_to(cast(y, x.dtype()), x.shape()), z);
}

}  // namespace rlx
