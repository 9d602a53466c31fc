// Control flow, batching and second derivatives against values and derivatives computed by JAX.
#include "vectors/jax_case.h"

namespace rlx::test {
namespace {

/// The square root of a by Newton's method, and the number of steps.
Values newton_root(const Values& x) {
  const Value a = x[0];
  const auto open = [a](const Values& s) { return gt(abs(s[0] * s[0] - a), a * 1e-5); };
  const auto step = [a](const Values& s) { return Values{(s[0] + a / s[0]) / 2, s[1] + scalar(a, 1, i32)}; };
  return while_loop(open, step, {a, scalar(a, 0, i32)});
}

Values sine_loop(const Values& x) {
  return fori_loop(5, [](Value i, const Values& y) { return Values{sin(y[0]) * cast(i + scalar(i, 1, i32), f32)}; }, x);
}

Values three_branches(const Values& x) {
  return switch_case(x[0], {x[1]},
                     {[](const Values& v) { return Values{sin(v[0])}; }, [](const Values& v) { return Values{v[0] * v[0]}; },
                      [](const Values& v) { return Values{-v[0]}; }});
}

Values scan_without_inputs(const Values& x) {
  return scan([](const Values& c, const Values&) { return std::pair{Values{cos(c[0])}, Values{c[0]}}; }, x, {}, Dim(4));
}

Values scan_with_counter(const Values& x) {
  const auto step = [](const Values& s, const Values& y) {
    return std::pair{Values{s[0] + y[0], s[1] + scalar(s[1], 1, i32)}, Values{s[0] * cast(s[1], f32)}};
  };
  return scan(step, {scalar(x[0], 0, f32), scalar(x[0], 0, i32)}, {x[0]});
}

/// The cube root by Newton's method, with the derivative of the equation that it solves: 3 x^2 dx = da.
Values implicit_root(const Values& x) {
  const Function solve = [](const Values& a) {
    const auto step = [&a](Value, const Values& r) { return Values{r[0] - (r[0] * r[0] * r[0] - a[0]) / (3 * r[0] * r[0])}; };
    return fori_loop(30, step, {scalar(a[0], 1, f32)});
  };
  const JvpRule rule = [solve](const Values& a, const Values& da) {
    const Value root = solve(a)[0];
    return Values{da[0] / (3 * root * root)};
  };
  return custom_jvp(solve, rule)(x);
}

Values recomputed(const Values& x) {
  return checkpoint([](const Values& v) { return Values{sin(matmul(sin(matmul(v[0], v[1])), v[1]))}; }, Save::nothing)(x);
}

JaxGroup control() {
  return {
      .rules =
          {
              {"while_newton", made(newton_root)},
              {"while_jvp", made(sine_loop)},
              {"switch_m1", made(three_branches)},
              {"switch_9", made(three_branches)},
              {"scan_no_inputs", made(scan_without_inputs)},
              {"scan_int_carry", made(scan_with_counter)},
              {"custom_root_grad", made(implicit_root)},
              {"checkpoint", made(recomputed)},
          },
  };
}

/// x.at[i].add(u) of one example: indices below 0 count from the end, others outside are dropped.
Values added_at(const Values& x) {
  const Value wrapped = select(lt(x[1], scalar(x[1], 0, i32)), x[1] + dim_value(x[1], x[0].dim(0), i32), x[1]);
  return {scatter(x[0], expand_dims(wrapped, {-1}), x[2], {{}, {0}, {0}}, ScatterKind::add, IndexMode::fill)};
}

Values geometric_scan(const Values& x) {
  return scan([](const Values& c, const Values& v) { return std::pair{Values{c[0] * v[0]}, Values{c[0]}}; }, {x[0]}, {x[1]});
}

/// The solution of (a a^T + 1) y = b by P A = L U.
Values positive_solve(const Values& x) {
  const Value row = iota(x[0], {3, 3}, i32, 0), column = iota(x[0], {3, 3}, i32, 1);
  const Values factors = lu(matmul(x[0], swap_axes(x[0], 0, 1)) + cast(eq(row, column), f32));
  const Value b = expand_dims(take(x[1], factors[2]), {-1});
  return {squeeze(triangular_solve(factors[0], triangular_solve(factors[0], b, true, true, false, true), true, false), {-1})};
}

JaxMapping batched(const Function& function, std::vector<std::optional<std::int64_t>> axes, std::optional<Tolerance> tolerance = {}) {
  return made([function, axes](const Values& x) { return vmap(function, x, axes); }, tolerance);
}

JaxGroup batching() {
  const Function sliced = [](const Values& x) { return Values{dynamic_slice(x[0], {x[1]}, {3}, true)}; };
  return {
      .rules =
          {
              {"vmap_dynamic_slice", batched(sliced, {0, 0})},
              {"vmap_scatter_add", batched(added_at, {0, 0, 0})},
              {"vmap_scan", batched(geometric_scan, {0, 1})},
              {"vmap_cholesky_solve", batched(positive_solve, {0, 0}, Tolerance{2e-5, 2e-5})},  // condition of about ten
          },
  };
}

/// The second derivatives of a scalar function.
JaxMapping hessian(const std::function<Value(Value)>& function) {
  return made([function](const Values& x) {
    return jacobian([function](const Values& v) { return grad(function(v[0]), {v[0]}); }, x[0], JacobianMode::forward);
  });
}

JaxGroup transforms() {
  return {
      .rules =
          {
              {"hessian", hessian([](Value x) { return sum(log(cosh(x)), {0}) * prod(x, {0}); })},
              {"grad_of_softmax_ce_hessian", hessian([](Value x) { return -squeeze(slice_axis(log_softmax(x), 0, 1, 2), {0}); })},
          },
  };
}

TEST(Jax, Control) { check_jax_group("control", control()); }
TEST(Jax, Batching) { check_jax_group("vmap", batching()); }
TEST(Jax, Hessians) { check_jax_group("transforms", transforms()); }

}  // namespace
}  // namespace rlx::test
