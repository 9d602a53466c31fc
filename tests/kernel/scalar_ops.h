#pragma once
#include <array>
#include <cmath>
#include <cstring>

#include "ops/sample_operands.h"
#include "ops/scalar/scalar.h"
#include "rlx/ops.h"

// Graphs of scalar ops for kernels, and what their results may differ from the reference.
namespace rlx::test {

constexpr std::array generated_types{f32, f16, bf16, f64, i8, i16, i32, i64, u8, u16, u32, u64, boolean};

/// Equal bits, or both NaN.
inline bool same_element(const Array& a, const Array& b, std::int64_t i) {
  const std::size_t bytes = static_cast<std::size_t>(info(a.dtype()).bits) / 8, at = static_cast<std::size_t>(i) * bytes;
  if (std::memcmp(a.bytes().data() + at, b.bytes().data() + at, bytes) == 0) return true;
  return is_float(a.dtype()) && std::isnan(a.get_double(i)) && std::isnan(b.get_double(i));
}

/// Smallest normal and largest number of a float type that kernels compute.
inline double smallest_normal(DType t) { return t == f64 ? 0x1p-1022 : t == f16 ? 0x1p-14 : 0x1p-126; }
inline double largest_number(DType t) {
  return t == f64 ? 0x1.fffffffffffffp1023 : t == f16 ? 65504 : t == bf16 ? 0x1.fep127 : 0x1.fffffep127;
}

/// Distance from the reference in units of the last place of the type. Infinity is the number after the largest one; NaN is next to
/// nothing, and neither is a zero to the other.
inline double ulps_off(DType t, double seen, double wanted) {
  if (std::isnan(seen) || std::isnan(wanted)) return std::isnan(seen) && std::isnan(wanted) ? 0 : INFINITY;
  if (seen == wanted) return std::signbit(seen) == std::signbit(wanted) ? 0 : INFINITY;
  const auto unit = [&](double x) {
    int exponent = 0;
    std::frexp(std::max(std::fabs(x), smallest_normal(t)), &exponent);
    return std::ldexp(epsilon(t), exponent - 1);
  };
  if (std::isinf(seen) || std::isinf(wanted)) {
    const double finite = std::isinf(seen) ? wanted : seen, largest = largest_number(t);
    return std::signbit(seen) == std::signbit(wanted) ? 1 + (largest - std::fabs(finite)) / unit(largest) : INFINITY;
  }
  return std::fabs(seen - wanted) / unit(wanted);
}
inline double ulps_off(const Array& seen, const Array& wanted, std::int64_t i) {
  return ulps_off(seen.dtype(), seen.get_double(i), wanted.get_double(i));
}

/// The bound of the table. Operations that round once are exact: also in a wider type first, as f64 and f32 have more than twice the
/// digits of f32 and the narrow types. Other functions of narrow floats are off by less than the rounding, so by one unit at most.
inline double allowed_ulps(const ScalarInfo& row, DType t) { return register_type(t) == t ? row.ulp : std::min(row.ulp, 1.0); }

/// Casts to narrow floats go through f32, which rounds numbers with more digits first.
inline bool rounds_twice(DType from, DType to) {
  return register_type(to) != to && (from == f64 || (is_integer(from) && info(from).bits > 16));
}

/// All scalar ops that take operands of this type, as the outputs of one graph over `count` elements; and how far a kernel may be from
/// the reference, in units of the last place of the result. Without `has_f64` nothing becomes f64.
inline Graph scalar_ops_on(DType t, std::int64_t count, std::vector<double>& allowed, bool has_f64 = true) {
  Graph graph;
  const Value x = graph.input("x", {count}, t), z = graph.input("z", {count}, t), w = graph.input("w", {count}, boolean);
  const auto add = [&](const std::string& name, double ulp, const auto& build) {
    try {
      const Value y = build();
      if (!can_generate(y.dtype())) return;
      // A value that is an output already is tested under its first name.
      for (const auto& [other, value] : graph.outputs())
        if (value == y) return;
      graph.output(name, y);
      allowed.push_back(ulp);
    } catch (const Error&) {
      return;  // the op does not take this type
    }
  };
  for (int i = 0; i < scalar_table_size; ++i) {
    const auto op = static_cast<ScalarOp>(i);
    const ScalarInfo& row = scalar_info(op);
    add(std::string(row.name), allowed_ulps(row, t),
        [&] { return apply(find_op(row.name), {}, row.operands == 1 ? std::vector{x} : std::vector{x, z})[0]; });
  }
  if (is_float(t)) add("max with 0", 0, [&] { return max(x, scalar(x, 0, t)); });
  add("max in f32", 0, [&] { return max(cast(x, f32), cast(z, f32)); });
  add("select", 0, [&] { return select(w, x, z); });
  for (DType to : generated_types) {
    if (to == f64 && !has_f64) continue;
    add("cast to " + std::string(name(to)), rounds_twice(t, to) ? 1 : 0, [&] { return to == t ? -x : cast(x, to); });
    // Words of other widths have another shape.
    if (info(to).bits == info(t).bits) add("bits as " + std::string(name(to)), 0, [&] { return bitcast(x, to); });
  }
  return graph;
}

}  // namespace rlx::test
