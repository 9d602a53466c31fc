// Elementwise ops, integer arithmetic and casts against values and derivatives computed by JAX.
#include "vectors/jax_case.h"

namespace rlx::test {
namespace {

/// One operation in f64, rounded to f32 once: half a unit in the last place; the derivative multiplies two or three such results.
constexpr Tolerance rounded_once{5e-7, 0};
/// The same, but half of the least subnormal (1.4e-45) is a tie, which may go either way; the largest element is 0.2.
constexpr Tolerance halved{5e-7, 1e-44};
/// Composites of a few f32 nodes: each adds a rounding, and near a zero of the result the largest element is the measure.
constexpr Tolerance composed{2e-6, 2e-7};

/// Floats in the order of their bits: negative NaN, numbers, NaN, -0 before 0.
Value total_order_key(Value x) {
  const Value bits = bitcast(x, i32);
  return select(lt(bits, scalar(x, 0, i32)), logical_xor(bits, scalar(x, 2147483647, i32)), bits);
}

Value integer_power(Value x, std::int64_t n) {
  if (is_float(x.dtype())) return pow(x, scalar(x, static_cast<double>(n), x.dtype()));
  Value power = ones_like(x);
  for (std::int64_t i = 0; i < std::abs(n); ++i) power = power * x;
  return n < 0 ? reciprocal(power) : power;
}

/// The remainder with the sign of the divisor, and the quotient that goes with it.
Value floored_remainder(Value x, Value z) {
  const Value zero = scalar(x, 0, x.dtype()), r = rem(x, z);
  return select(logical_and(ne(r, zero), ne(lt(r, zero), lt(z, zero))), r + z, r);
}
Value floored_quotient(Value x, Value z) {
  const Value zero = scalar(x, 0, x.dtype());
  return div(x, z) - cast(logical_and(ne(rem(x, z), zero), ne(lt(x, zero), lt(z, zero))), x.dtype());
}

/// Arithmetic shifts of an unsigned type fill with the top bit in JAX; ours with 0.
Value shift_by_top_bit(Value x, Value z) {
  const DType type = x.dtype(), is_signed = type == u8 ? i8 : type == u16 ? i16 : type == u32 ? i32 : type == u64 ? i64 : type;
  return bitcast(shr(bitcast(x, is_signed), bitcast(z, is_signed)), type);
}

Value high_word(Value x) { return cast(shr(x, scalar(x, 32, u64)), u32); }

Value cast_to(Value x, DType to) { return x.dtype() == to ? x : cast(x, to); }

JaxGroup elementwise() {
  return {
      .rules =
          {
              {"lax.neg", unary(neg, exact)},
              {"lax.abs", unary(abs, exact)},
              {"lax.ceil", unary(ceil, exact)},
              {"lax.exp2", unary(exp2, rounded_once)},
              {"lax.expm1", unary(expm1, rounded_once)},
              {"lax.log1p", unary(log1p, rounded_once)},
              {"jnp.log2", unary(log2, composed)},
              {"lax.sqrt", unary(sqrt, rounded_once)},
              {"lax.rsqrt", unary(rsqrt, rounded_once)},
              {"lax.sin", unary(sin, rounded_once)},
              {"lax.cos", unary(cos, rounded_once)},
              {"lax.tanh", unary(tanh, rounded_once)},
              {"lax.sinh", unary(sinh, composed)},
              {"lax.asin", unary(asin, composed)},
              {"lax.acos", unary(acos, composed)},
              {"lax.asinh", unary(asinh, composed)},
              {"lax.acosh", unary(acosh, composed)},
              {"lax.erf", unary(erf, rounded_once)},
              {"lax.erfc", unary(erfc, composed)},
              {"lax.square", unary(square, rounded_once)},
              {"jnp.reciprocal", unary(reciprocal, rounded_once)},
              {"round_half_even", unary(round, exact)},
              {"lax.integer_pow",
               {.build = [](auto& x, auto& p) { return Values{integer_power(x[0], p["y"].template get<std::int64_t>())}; },
                .tolerance = rounded_once}},
              {"lax.lgamma", unary(lgamma, rounded_once)},
              {"lax.digamma", unary(digamma, rounded_once)},
              {"lax.bessel_i1e", unary(bessel_i1e, halved)},
              {"lax.igammac", binary(igammac, rounded_once)},
              {"lax.zeta", binary(zeta, rounded_once)},
              {"lax.reduce_precision",
               {.build =
                    [](auto& x, auto& p) {
                      return Values{reduce_precision(x[0], p["exponent_bits"].template get<std::int64_t>(),
                                                     p["mantissa_bits"].template get<std::int64_t>())};
                    },
                .tolerance = exact}},
              {"lax.mul", binary(mul, rounded_once)},
              {"lax.pow", binary(pow, rounded_once)},
              {"lax.atan2", binary(atan2, composed)},
              {"lax.ne", {.build = [](auto& x, auto&) { return Values{ne(x[0], x[1])}; }, .flushed = true}},
              {"lax.gt", {.build = [](auto& x, auto&) { return Values{gt(x[0], x[1])}; }, .flushed = true}},
              {"lax_lt_to.hard", made([](auto& x) { return Values{lt(total_order_key(x[0]), total_order_key(x[1]))}; })},
              {"lax.min", binary(min, exact)},
              {"lax.rem", binary(rem, rounded_once)},
              {"clamp",  // of hard operands too
               {.build = [](auto& x, auto&) { return Values{clamp(x[1], x[0], x[2])}; }, .tolerance = exact, .compiled = false}},
              {"select_n.i32", made(
                                   [](auto& x) {
                                     return Values{
                                         select(eq(x[0], scalar(x[0], 0, i32)), x[1], select(eq(x[0], scalar(x[0], 1, i32)), x[2], x[3]))};
                                   },
                                   exact)},
              {"complex_imag", unary(imag, exact)},
              {"complex_exp", unary(exp)},
              {"complex_tanh", unary(tanh)},
              {"complex_add2", binary(add)},
              {"complex_div2", binary(div)},
          },
  };
}

JaxGroup integer() {
  return {
      .rules =
          {
              {"lax.add", binary(add)},
              {"lax.sub", binary(sub)},
              {"lax.mul", binary(mul)},
              {"lax.div", binary(div)},
              {"lax.rem", binary(rem)},
              {"lax.min", binary(min)},
              {"lax.max", binary(max)},
              {"lax.neg", unary(neg)},
              {"lax.sign", unary(sign)},
              {"lax.bitwise_xor", binary(logical_xor)},
              {"lax.bitwise_or", binary(logical_or)},
              {"lax.bitwise_and", binary(logical_and)},
              {"lax.bitwise_not", unary(logical_not)},
              {"lax.shift_left", binary(shl)},
              {"lax.shift_right_arithmetic", binary(shift_by_top_bit)},
              {"lax.shift_right_logical", binary(shr)},
              {"lax.integer_pow",
               {.build = [](auto& x, auto& p) { return Values{integer_power(x[0], p["y"].template get<std::int64_t>())}; }}},
              {"lax.clz", unary(clz)},
              {"lax.population_count", unary(population_count)},
              {"jnp.remainder", binary(floored_remainder)},
              {"jnp.floor_divide", binary(floored_quotient)},
              {"reduce_prod.u8", made([](auto& x) { return Values{prod(x[0], {0})}; })},
              {"reduce_sum.u32", made([](auto& x) { return Values{sum(x[0], {0})}; })},
              {"reduce_sum.i64", made([](auto& x) { return Values{sum(x[0], {0})}; })},
              {"mul_hi_u32", made([](auto& x) { return Values{high_word(cast(x[0], u64) * cast(x[1], u64))}; })},
          },
  };
}

JaxGroup casts() {
  JaxGroup group{
      .rules = {
          {"lax.bitcast_convert_type",
           {.build = [](auto& x, auto& p) { return Values{bitcast(x[0], numpy_dtype(p["new_dtype"].template get<std::string>()))}; },
            .tolerance = exact}},
      }};
  for (const json::Value& entry : jax_index()["cases"]) {
    const auto name = entry["name"].get<std::string>();
    if (entry["group"] != "cast" || entry.value("op", std::string()) == "lax.bitcast_convert_type") continue;
    const DType to = recorded_dtype(entry["out"][0].get<std::string>());
    group.rules[name] = made([to](auto& x) { return Values{cast_to(x[0], to)}; }, exact);
  }
  group.rules["f64_to_bool"].flushed = true;
  group.rules["f32_to_f64"].compiled = false;  // kernels flush the subnormal operands that were recorded exactly
  return group;
}

TEST(Jax, Elementwise) { check_jax_group("elementwise", elementwise()); }
TEST(Jax, Integer) { check_jax_group("integer", integer()); }
TEST(Jax, Casts) { check_jax_group("cast", casts()); }

// The tests of this folder know every group of the index.
TEST(Jax, EveryGroupIsTested) {
  const std::set<std::string> tested{"elementwise", "integer", "cast", "structure", "reduce",  "sort", "gather_scatter", "dot",      "conv",
                                     "window",      "nn",      "fft",  "linalg",    "control", "vmap", "transforms",     "functions"};
  for (const json::Value& entry : jax_index()["cases"]) EXPECT_TRUE(tested.contains(entry["group"].get<std::string>())) << entry["name"];
}

}  // namespace
}  // namespace rlx::test
