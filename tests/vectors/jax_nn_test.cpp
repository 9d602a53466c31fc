// Layers, Fourier transforms and linear algebra against values and derivatives computed by JAX.
#include <numbers>

#include "ir/sources.h"
#include "vectors/jax_case.h"

namespace rlx::test {
namespace {

/// Softmax and its relatives take logs of sums of exponentials; attention adds two products: a few more roundings than one node.
constexpr Tolerance layers{4e-6, 4e-6};
/// Hard operands (subnormals, large numbers, infinities): composites round f32 in between, small results by the measure of the largest.
constexpr Tolerance hard{4e-6, 1e-9};

Value gated(Value x) {
  const Values halves = split_evenly(x, 2, -1);
  return halves[0] * sigmoid(halves[1]);
}

/// log_softmax along the axes that are named, by default the last.
Value over_lines(Value x, const json::Value& p) {
  const std::vector<std::int64_t> axes = numbers_or(p, "axis", {-1});
  return axes.size() == 1 ? log_softmax(x, axes[0]) : x - logsumexp(x, Axes(axes), true);
}

/// JAX keeps heads behind the sequence: (B, S, H, D).
Value attend(const Values& x, AttentionOptions options) {
  const auto heads_first = [](Value v) { return swap_axes(v, 1, 2); };
  return heads_first(attention(heads_first(x[0]), heads_first(x[1]), heads_first(x[2]), options));
}

/// Query i sees keys i - 2 .. i + 1.
Value attend_window(const Values& x) {
  const Value query = iota(x[0], {5, 5}, i32, 0), key = iota(x[0], {5, 5}, i32, 1);
  const Value near = logical_and(ge(key, query - 2), le(key, query + 1));
  return attend(x, {.mask = near});
}

Values batch_normalized(const Values& x) {
  const Value average = mean(x[0], {0, 1}), variance = var(x[0], {0, 1}, 0);
  return {batch_norm(x[0], average, variance, x[1], x[2], 1e-3, 2), average, variance};
}

JaxGroup nn() {
  return {
      .rules =
          {
              {"nn.relu", unary(relu, exact)},
              {"nn.selu", unary(selu)},
              {"nn.softplus", unary(softplus)},
              {"nn.soft_sign", unary(softsign)},
              {"nn.hard_sigmoid", unary(hardsigmoid)},
              {"nn.squareplus", made([](auto& x) { return Values{(x[0] + sqrt(x[0] * x[0] + 4)) * 0.5}; })},
              {"nn.standardize",
               {.build = [](auto& x, auto& p) { return Values{layer_norm(x[0], {}, {}, Axes(numbers_or(p, "axis", {-1})))}; },
                .tolerance = layers}},
              {"nn.gelu",
               {.build = [](auto& x, auto& p) { return Values{p.value("approximate", true) ? gelu_tanh(x[0]) : gelu(x[0])}; },
                .tolerance = hard}},
              {"nn.sigmoid", unary(sigmoid, hard)},
              {"nn.glu", unary(gated)},
              {"nn.softmax", {.build = [](auto& x, auto& p) { return Values{exp(over_lines(x[0], p))}; }, .tolerance = layers}},
              {"nn.log_softmax", {.build = [](auto& x, auto& p) { return Values{over_lines(x[0], p)}; }, .tolerance = layers}},
              {"layer_norm", made([](auto& x) { return Values{layer_norm(x[0], x[1], x[2])}; }, layers)},
              {"batch_norm_train", made(batch_normalized, layers)},
              {"bce_logits", made([](auto& x) { return Values{bce_with_logits(x[0], x[1])}; })},
              {"attention_causal", made([](auto& x) { return Values{attend(x, {.causal = true})}; }, layers)},
              {"attention_window", made([](auto& x) { return Values{attend_window(x)}; }, layers)},
              {"mlp", made([](auto& x) { return Values{matmul(tanh(matmul(x[0], x[1]) + x[2]), x[3])}; }, layers)},
          },
  };
}

/// The sum over n of 2 x[n] cos(pi k (2n + 1) / 2N): the transform of x and its mirror image, turned by half a sample.
Value cosine_transform(Value x) {
  const std::int64_t n = x.dim(-1).value();
  const Value frequencies = slice_axis(rfft(concat({x, flip(x, {-1})}, -1)), -1, 0, n);
  const Value angle = iota(x, {n}, f32) * (std::numbers::pi / (2.0 * static_cast<double>(n)));
  return real(frequencies) * cos(angle) + imag(frequencies) * sin(angle);
}

JaxGroup fourier() {
  const auto over = [](int axes) {
    return made([axes](const Values& x) {
      Value y = x[0];
      for (int i = 1; i <= axes; ++i) y = fft(y, -i);
      return Values{y};
    });
  };
  return {
      .rules =
          {
              {"fft_8", over(1)},
              {"fft2", over(2)},
              {"fft3", over(3)},
              {"fft_prime", over(1)},
              {"ifft_7", made([](auto& x) { return Values{fft(x[0], -1, true)}; })},
              {"rfft_12", made([](auto& x) { return Values{rfft(x[0])}; })},
              {"irfft_8", made([](auto& x) { return Values{irfft(x[0], 8)}; })},
              {"dct2", unary(cosine_transform)},
          },
  };
}

/// Of the symmetric part, as JAX takes it.
Values symmetric_cholesky(const Values& x) { return {cholesky((x[0] + swap_axes(x[0], -1, -2)) * 0.5)}; }

Values solved(const Values& x, const json::Value& p) {
  const Value a = p.value("conjugate_a", false) ? conj(x[0]) : x[0];
  return {triangular_solve(a, x[1], p.value("left_side", false), p.value("lower", false), p.value("transpose_a", false),
                           p.value("unit_diagonal", false))};
}

/// Of the symmetric part; vectors have no sign of their own, so they get those of the recording.
JaxMapping eigenvectors(const std::string& name, std::optional<Tolerance> tolerance = {}) {
  return made(
      [name](const Values& x) {
        const Values y = eigh((x[0] + swap_axes(x[0], -1, -2)) * 0.5);
        const Value recorded = make_constant(y[1].graph(), SafetensorsFile::open(fixture("jax/linalg.safetensors")).array(name + "/out1"));
        return Values{y[0], y[1] * sign(sum(y[1] * recorded, {-2}, true))};
      },
      tolerance);
}

/// The sign and the log of the magnitude of the determinant, from P a = L U; every pivot off the diagonal is one exchange.
Values sign_and_log_determinant(const Values& x) {
  const Values factors = lu(x[0]);
  const Value pivots = diagonal(factors[0], -2, -1);
  const Value exchanges = sum(cast(ne(factors[1], iota(x[0], factors[1].shape(), i32, -1)), i32), {-1});
  const Value odd = cast(rem(exchanges, scalar(x[0], 2, i32)), x[0].dtype());
  return {prod(sign(pivots), {-1}) * (1 - 2 * odd), sum(log(abs(pivots)), {-1})};
}

JaxGroup linear_algebra() {
  return {
      .rules =
          {
              {"lax.linalg.triangular_solve", {.build = solved}},
              {"triangular_solve_upper_f64",
               made([](auto& x) { return Values{triangular_solve(swap_axes(x[0], -1, -2), x[1], true, false)}; })},
              {"cholesky_f32", made(symmetric_cholesky)},
              {"cholesky_f64", made(symmetric_cholesky)},
              {"slogdet_f32",
               made(sign_and_log_determinant, Tolerance{2e-5, 2e-5})},  // the condition of the matrices, a few tens, on the roundings
              {"slogdet_f64", made(sign_and_log_determinant)},
              {"eigh_f32", eigenvectors("eigh_f32", Tolerance{3e-5, 3e-5})},  // roundings over a gap of 1/170 of the largest eigenvalue
              {"eigh_f64", eigenvectors("eigh_f64")},
              {"svdvals_f32", made([](auto& x) { return Values{svd(x[0])[1]}; })},
              {"svdvals_f64", made([](auto& x) { return Values{svd(x[0])[1]}; })},
              {"matrix_power_f64", made([](auto& x) {
                 const Value two = matmul(x[0], x[0]);
                 return Values{matmul(matmul(two, two), x[0])};
               })},
          },
      .waiting =
          {
              {"householder_product", "products of Householder reflections"},
          },
  };
}

TEST(Jax, Layers) { check_jax_group("nn", nn()); }
TEST(Jax, Fourier) { check_jax_group("fft", fourier()); }
TEST(Jax, LinearAlgebra) { check_jax_group("linalg", linear_algebra()); }

}  // namespace
}  // namespace rlx::test
