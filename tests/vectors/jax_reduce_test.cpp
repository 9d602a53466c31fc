// Reductions, contractions, convolutions and windows against values and derivatives computed by JAX.
#include <numeric>

#include "vectors/jax_case.h"

namespace rlx::test {
namespace {

/// The axes that are named, or all.
Axes axes_of(Value x, const json::Value& p) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(x.rank()));
  std::iota(all.begin(), all.end(), 0);
  return Axes(numbers_or(p, "axis", all));
}
std::int64_t axis_of(const json::Value& p) { return p["axis"].get<std::int64_t>(); }
bool keeps(const json::Value& p) { return p.value("keepdims", false); }
DType index_type(const json::Value& p) { return numpy_dtype(p.value("index_dtype", std::string("int64"))); }
Value of_type(Value x, DType type) { return x.dtype() == type ? x : cast(x, type); }
bool backwards(const json::Value& p) { return p.value("reverse", false); }

/// A reduction over the axes that the parameters name.
template <class Op>
JaxMapping reduced(Op op) {
  return {.build = [op](const Values& x, const json::Value& p) { return Values{op(x[0], axes_of(x[0], p), p)}; }};
}

/// The running log of the sum of exponentials, from the end to the front; the shift by the largest element cancels.
Value cumulative_logsumexp(Value x, std::int64_t axis, bool reverse) {
  const Value shift = stop_gradient(reduce_max(x, {axis}, true));
  return log(cumsum(exp(x - shift), axis, false, reverse)) + shift;
}

/// log |sum of b e^x| and the sign of the sum.
Values weighted_logsumexp(const Values& x) {
  const Value shift = stop_gradient(reduce_max(x[0], {1}, true)), total = sum(x[1] * exp(x[0] - shift), {1});
  return {log(abs(total)) + squeeze(shift, {1}), sign(total)};
}

JaxGroup reductions() {
  const double infinity = std::numeric_limits<double>::infinity();
  return {
      .rules =
          {
              {"jnp.sum", reduced([](Value x, Axes axes, auto& p) { return sum(x, axes, keeps(p)); })},
              {"jnp.prod", reduced([](Value x, Axes axes, auto& p) { return prod(x, axes, keeps(p)); })},
              {"jnp.max", reduced([](Value x, Axes axes, auto& p) { return reduce_max(x, axes, keeps(p)); })},
              {"jnp.min", reduced([](Value x, Axes axes, auto& p) { return reduce_min(x, axes, keeps(p)); })},
              {"jnp.mean", reduced([](Value x, Axes axes, auto& p) { return mean(x, axes, keeps(p)); })},
              {"jnp.var", reduced([](Value x, Axes axes, auto& p) { return var(x, axes, p.value("ddof", 0), keeps(p)); })},
              {"jnp.std", reduced([](Value x, Axes axes, auto& p) { return std_dev(x, axes, p.value("ddof", 0), keeps(p)); })},
              {"jnp.argmax", {.build = [](auto& x, auto& p) { return Values{cast(argmax(x[0], axis_of(p), keeps(p)), i64)}; }}},
              {"lax.argmax", {.build = [](auto& x, auto& p) { return Values{of_type(argmax(x[0], axis_of(p)), index_type(p))}; }}},
              {"lax.argmin", {.build = [](auto& x, auto& p) { return Values{of_type(argmin(x[0], axis_of(p)), index_type(p))}; }}},
              {"reduce_or_i32", made([](auto& x) { return Values{reduce_or(x[0], {0})}; })},
              {"sum_i8_to_i32", made([](auto& x) { return Values{sum(cast(x[0], i32), {1})}; })},
              {"lax.cumsum", {.build = [](auto& x, auto& p) { return Values{cumsum(x[0], axis_of(p), false, backwards(p))}; }}},
              {"lax.cumprod", {.build = [](auto& x, auto& p) { return Values{cumprod(x[0], axis_of(p), false, backwards(p))}; }}},
              {"lax.cummin", {.build = [](auto& x, auto& p) { return Values{cummin(x[0], axis_of(p), backwards(p))}; }}},
              {"lax.cummax", {.build = [](auto& x, auto& p) { return Values{cummax(x[0], axis_of(p), backwards(p))}; }}},
              {"lax.cumlogsumexp",
               {.build = [](auto& x, auto& p) { return Values{cumulative_logsumexp(x[0], axis_of(p), backwards(p))}; }}},
              {"logsumexp_b", made(weighted_logsumexp)},
              {"norms", made([infinity](auto& x) { return Values{norm(x[0], {1}), norm(x[0], {1}, 1), norm(x[0], {1}, infinity)}; })},
          },
  };
}

Values contracted(const Values& x, const json::Value& p) {
  const json::Value &d = p["dimension_numbers"], &contract = d[0], &batch = d[1];
  const Values wide = of_preferred_type(x, p);
  return {dot(wide[0], wide[1], numbers(contract[0]), numbers(contract[1]), numbers(batch[0]), numbers(batch[1]))};
}

JaxGroup contractions() {
  return {
      .rules =
          {
              {"lax.dot_general", {.build = contracted}},
              {"einsum_2", made([](auto& x) { return Values{einsum("iij->ij", x)}; })},
              {"einsum_5", made([](auto& x) { return Values{einsum("bgqd,bkd->bgqk", x)}; })},
          },
  };
}

/// Where the letters of "NHWC" stand, in the order first, second, spatial.
std::vector<std::int64_t> layout(const std::string& letters, const std::string& order) {
  std::vector<std::int64_t> places;
  for (char letter : order) places.push_back(static_cast<std::int64_t>(letters.find(letter)));
  return places;
}

/// Fills in the padding of one spatial axis: numbers, nothing, or what keeps ceil(size / stride) results.
void add_padding(ConvOptions& options, const json::Value& padding, std::size_t axis, std::int64_t size, std::int64_t kernel) {
  std::int64_t lo = 0, hi = 0;
  if (padding.is_array()) {
    lo = padding[axis][0].get<std::int64_t>();
    hi = padding[axis][1].get<std::int64_t>();
  } else if (padding != "VALID") {
    const std::int64_t stride = options.strides[axis], results = (size + stride - 1) / stride;
    const std::int64_t total = std::max<std::int64_t>(0, (results - 1) * stride + kernel - size);
    lo = padding == "SAME_LOWER" ? total - total / 2 : total / 2;
    hi = total - lo;
  }
  options.padding_lo.push_back(lo);
  options.padding_hi.push_back(hi);
}

Values convolved(const Values& x, const json::Value& p) {
  const auto names = p["dimension_numbers"].get<std::vector<std::string>>();
  std::string spatial;
  for (char letter : names[1])  // the order of strides and padding, too
    if (letter != 'O' && letter != 'I') spatial += letter;
  ConvOptions options{.lhs_spec = layout(names[0], "NC" + spatial),
                      .rhs_spec = layout(names[1], "OI" + spatial),
                      .out_spec = layout(names[2], "NC" + spatial)};
  const std::vector<std::int64_t> ones(spatial.size(), 1);
  options.strides = numbers_or(p, "window_strides", ones);
  options.lhs_dilation = numbers_or(p, "lhs_dilation", ones);
  options.rhs_dilation = numbers_or(p, "rhs_dilation", ones);
  options.feature_group_count = p.value("feature_group_count", 1);
  options.batch_group_count = p.value("batch_group_count", 1);
  for (std::size_t i = 0; i < spatial.size(); ++i) {
    const std::int64_t kernel = (x[1].dim(options.rhs_spec[i + 2]).value() - 1) * options.rhs_dilation[i] + 1;
    add_padding(options, p["padding"], i, x[0].dim(options.lhs_spec[i + 2]).value(), kernel);
  }
  const Values wide = of_preferred_type(x, p);
  return {conv_general(wide[0], wide[1], options)};
}

JaxGroup convolutions() {
  // SAME for kernels of (3, 4) and strides of (2, 3): k + s - 2 elements around the dilated operand, the larger half in front.
  const ConvOptions transposed{.lhs_spec = {0, 3, 1, 2},
                               .rhs_spec = {3, 2, 0, 1},
                               .out_spec = {0, 3, 1, 2},
                               .padding_lo = {2, 3},
                               .padding_hi = {1, 2},
                               .lhs_dilation = {2, 3}};
  return {.rules = {
              {"lax.conv_general_dilated", {.build = convolved}},
              {"conv_transpose_same", made([transposed](auto& x) { return Values{conv_general(x[0], x[1], transposed)}; })},
          }};
}

/// Windows of the axes H, W of (N, H, W, C); C takes part with windows of 1.
JaxGroup windows() {
  const double infinity = std::numeric_limits<double>::infinity();
  const auto lowest = [infinity](const Values& x) {
    const Value rows = pad(x[0], {0, 1, 0, 0}, {0, 0, 2, 0}, {}, infinity);
    return Values{-max_pool(-rows, {2, 3, 1}, {1, 2, 1})};
  };
  const auto average = [](const Values& x) {
    const Dims lo{0, 1, 0, 0}, hi{0, 1, 1, 0};
    const Value ones = broadcast(scalar(x[0], 1, f32), x[0].shape(), {});
    return Values{sum_pool(pad(x[0], lo, hi), {3, 3, 1}, {2, 2, 1}) / sum_pool(pad(ones, lo, hi), {3, 3, 1}, {2, 2, 1})};
  };
  return {.rules = {
              {"max_pool", made([](auto& x) { return Values{max_pool(x[0], {2, 2, 1}, {2, 2, 1})}; })},
              {"min_pool", made(lowest)},
              {"max_pool_dilated", made([](auto& x) { return Values{max_pool(x[0], {2, 2, 1}, {1, 2, 1}, {0, 0, 0}, {2, 2, 1})}; })},
              {"avg_pool_same", made(average)},
          }};
}

TEST(Jax, Reductions) { check_jax_group("reduce", reductions()); }
TEST(Jax, Contractions) { check_jax_group("dot", contractions()); }
TEST(Jax, Convolutions) { check_jax_group("conv", convolutions()); }
TEST(Jax, Windows) { check_jax_group("window", windows()); }

}  // namespace
}  // namespace rlx::test
