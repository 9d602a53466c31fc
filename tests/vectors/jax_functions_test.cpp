// Functions, pools, scans, products of groups and factors against values and derivatives computed by JAX; see
// fixtures/jax/record_functions.py.
#include "vectors/jax_case.h"

namespace rlx::test {
namespace {

/// Computed in f64 and rounded once; derivatives of the quadrature in f64 are within 1e-12 of themselves.
constexpr Tolerance by_f64{5e-7, 0};
constexpr Tolerance quadrature{1e-12, 0};
/// The derivatives of erf_inv are powers of e to y^2, which is up to 15 (f64: 34) and as many times as wrong as y.
constexpr Tolerance f32_powers{4e-6, 0}, f64_powers{2e-14, 0};

JaxMapping resized(ResizeMode mode, Dims sizes, bool antialias) {
  return made([=](auto& x) { return Values{resize(x[0], sizes, {.mode = mode, .antialias = antialias})}; });
}

JaxMapping scanned(bool reverse) {
  return made([reverse](auto& x) {
    const auto combine = [](const Values& e, const Values& l) { return Values{e[0] * l[0], l[0] * e[1] + l[1]}; };
    return associative_scan(combine, x, 1, reverse);
  });
}

JaxMapping multiplied(const GatherNumbers& numbers, bool points) {
  return made([=](auto& x) {
    return Values{scatter(x[0], points ? expand_dims(x[1], {-1}) : x[1], x[2], numbers, ScatterKind::mul, IndexMode::fill)};
  });
}

/// The phase of the first row of vectors.
Value phase(Value vectors) { return sign(slice_axis(vectors, -2, 0, 1)); }

Values hermitian_factors(const Values& x) {
  const Values y = eigh((x[0] + conj(swap_axes(x[0], -1, -2))) * 0.5);
  return {y[0], y[1] * conj(phase(y[1]))};
}

Values singular_factors(const Values& x) {
  const Values y = svd(x[0]);
  return {y[0] * conj(phase(y[0])), y[1], y[2] * swap_axes(phase(y[0]), -1, -2)};
}

/// Kernels of loops with their derivatives are many: those of f32 are compiled here, all types in ops/decompositions.
void add_decompositions(JaxGroup& group) {
  for (const std::string type : {"f32", "f64", "c64"}) {
    const auto add = [&](const std::string& name, std::function<Values(const Values&)> build) {
      group.rules[name + "_" + type] = made(std::move(build));
      group.rules[name + "_" + type].compiled = type == "f32";
    };
    for (const char* sizes : {"5x3", "4x4", "wide"}) add(fmt::format("qr_{}", sizes), [](auto& x) { return qr(x[0]); });
    add("qr_complete", [](auto& x) { return qr(x[0], true); });
    add("eigh_phase", hermitian_factors);
    for (const char* sizes : {"5x3", "3x4"}) {
      add(fmt::format("svd_{}", sizes), singular_factors);
      add(fmt::format("pinv_{}", sizes), [](auto& x) { return Values{pinv(x[0])}; });
    }
  }
}

JaxGroup functions() {
  JaxGroup group{.rules = {{"erf_inv_f32", unary(erf_inv, f32_powers)},
                           {"erf_inv_f64", unary(erf_inv, f64_powers)},
                           {"lax.nextafter", binary(nextafter, exact)},
                           {"lax.shift_right_logical", binary(shr_logical)},
                           {"lax.ragged_dot", made([](auto& x) { return Values{ragged_dot(x[0], x[1], x[2])}; })},
                           {"lax.conj", unary(conj, exact)},
                           {"lax.abs", unary(abs)},
                           {"lax.lt", made([](auto& x) { return Values{lt(x[0], x[1])}; }, exact)},
                           {"lax.le", made([](auto& x) { return Values{le(x[0], x[1])}; }, exact)},
                           {"lax.gt", made([](auto& x) { return Values{gt(x[0], x[1])}; }, exact)},
                           {"lax.ge", made([](auto& x) { return Values{ge(x[0], x[1])}; }, exact)},
                           {"lax.max", binary(max, exact)},
                           {"lax.min", binary(min, exact)},
                           {"lax.linalg.lu", made([](auto& x) { return lu(x[0]); })}}};
  for (const std::string type : {"f32", "f64"}) {
    group.rules["betainc_" + type] = made([](auto& x) { return Values{betainc(x[0], x[1], x[2])}; }, type == "f32" ? by_f64 : quadrature);
    for (const auto& [name, mode] : {std::pair{"lanczos3", ResizeMode::lanczos3}, std::pair{"lanczos5", ResizeMode::lanczos5}}) {
      group.rules[fmt::format("resize_{}_9_{}", name, type)] = resized(mode, {9, 5}, true);
      group.rules[fmt::format("resize_{}_4_{}", name, type)] = resized(mode, {4, 13}, false);
    }
    group.rules["prod_pool_" + type] = made([](auto& x) { return Values{prod_pool(x[0], {2, 2}, {2, 1}, {1, 1})}; });
    group.rules["associative_scan_" + type] = scanned(false);
    group.rules["associative_scan_reverse_" + type] = scanned(true);
    group.rules["scatter_mul_unique_" + type] = multiplied({{1}, {0}, {0}}, false);
    group.rules["scatter_mul_meeting_" + type] = multiplied({{}, {0}, {0}}, true);
  }
  using Function = Value (*)(Operand);
  for (const auto& [name, function] :
       std::initializer_list<std::pair<const char*, Function>>{{"lax.rsqrt", rsqrt}, {"lax.expm1", expm1}, {"lax.log1p", log1p},
                                                               {"lax.sign", sign},   {"lax.tan", tan},     {"lax.sinh", sinh},
                                                               {"lax.cosh", cosh},   {"lax.asin", asin},   {"lax.acos", acos},
                                                               {"lax.atan", atan},   {"lax.asinh", asinh}, {"lax.acosh", acosh},
                                                               {"lax.atanh", atanh}, {"jnp.exp2", exp2},   {"lax.logistic", sigmoid},
                                                               {"jnp.log2", log2},   {"jnp.log10", log10}, {"jnp.reciprocal", reciprocal},
                                                               {"jnp.isnan", isnan}, {"jnp.isinf", isinf}, {"jnp.isfinite", is_finite}})
    group.rules[name] = unary(function);
  for (const json::Value& entry : jax_index()["cases"]) {
    const auto name = entry["name"].get<std::string>();
    const std::int64_t axis = name.find("empty_f") == std::string::npos ? 0 : 1;
    if (name.starts_with("reduce_max_empty")) group.rules[name] = made([axis](auto& x) { return Values{reduce_max(x[0], {axis})}; });
    if (name.starts_with("lu_") && name.find('x') != std::string::npos)
      group.rules[name] = made([](auto& x) { return Values{lu(x[0])[0]}; });
    if (name.starts_with("reduce_min_empty")) group.rules[name] = made([axis](auto& x) { return Values{reduce_min(x[0], {axis})}; });
  }
  add_decompositions(group);
  return group;
}

TEST(Jax, Functions) { check_jax_group("functions", functions()); }

}  // namespace
}  // namespace rlx::test
