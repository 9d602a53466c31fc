// Normalisations: over axes (layer, rms, l2, weight), over groups of channels, over the batch, over neighbouring channels.
// Statistics are kept in the accumulation type; the variance takes two passes, so that a large mean does not cancel it.
#include <algorithm>

#include "ops/wide.h"

namespace rlx {
namespace {

using In = std::span<const Value>;

void check_operands(std::string_view op, In operands, std::size_t needed, std::string_view words) {
  if (operands.size() != needed) fail("rlx.{}: {} operands (allowed: {}, as the attributes say: {})", op, operands.size(), words, needed);
  check_float(op, operands[0]);
}

// The next optional operand, widened, or null when it was not given.
Value next_if(bool given, In operands, std::size_t& next) { return given ? widen(operands[next++]) : Value(); }

// normal * gamma + beta with what is given of the two, rounded to `dtype`.
Value affine(Value normal, Value gamma, Value beta, DType dtype) {
  if (gamma) normal = normal * cast(gamma, normal.dtype());
  if (beta) normal = normal + cast(beta, normal.dtype());
  return cast(normal, dtype);
}

// (v - mean) / sqrt(var + eps) over `axes`.
Value standardize(Value v, const Axes& axes, double eps) {
  Value centred = v - mean(v, axes, true);
  return centred * rsqrt(mean(centred * centred, axes, true) + eps);
}

// A gamma or beta with as many axes as x, so that axis i of one is axis i of the other: given with one size for each of `axes`, or
// broadcastable to x.
Value aligned(std::string_view op, Value parameter, Value x, Axes axes) {
  if (!parameter) return parameter;
  for (auto& axis : axes.values) axis = normalize_axis(op, axis, x.type());
  std::sort(axes.values.begin(), axes.values.end());
  if (parameter.rank() == static_cast<int>(axes.size())) {
    Dims shape(x.shape().size(), 1), wanted;
    std::size_t i = 0;
    for (std::int64_t axis : axes) {
      wanted.push_back(x.dim(axis));
      shape[static_cast<std::size_t>(axis)] = parameter.shape()[i++];
    }
    if (parameter.shape() == wanted) return reshape(parameter, shape);
  }
  if (parameter.rank() > x.rank() || !(broadcast_shapes(op, parameter.shape(), x.shape()) == x.shape()))
    fail("rlx.{}: a scale or shift of {} does not fit {}", op, parameter.type().to_string(), x.type().to_string());
  return with_rank(parameter, x.rank());
}

Values listed(std::initializer_list<Value> operands) {
  Values given;
  for (Value v : operands)
    if (v) given.push_back(v);
  return given;
}

struct LayerNorm {
  static constexpr OpKind kind = OpKind::composite;
  static constexpr std::string_view name = "layer_norm";
  static constexpr std::string_view formula = "(x - mean) / sqrt(var + eps) * gamma + beta, mean and biased variance over `axes`";
  Axes axes;
  double eps = 1e-5;
  bool has_gamma = false, has_beta = false;
  static auto fields() { return Fields<&LayerNorm::axes, &LayerNorm::eps, &LayerNorm::has_gamma, &LayerNorm::has_beta>{}; }
  static Value body(const LayerNorm& op, In operands) {
    check_operands(name, operands, 1u + op.has_gamma + op.has_beta, "x, gamma, beta");
    std::size_t next = 1;
    Value gamma = next_if(op.has_gamma, operands, next), beta = next_if(op.has_beta, operands, next);
    return affine(standardize(widen(operands[0]), op.axes, op.eps), gamma, beta, operands[0].dtype());
  }
  static std::vector<Sample> samples() {
    const Sample::Operand x{{f32, {2, 3, 8}}, -3, 3}, row{{f32, {1, 1, 8}}, 0.5, 2};
    return {{{x, row, row}, attrs_of(LayerNorm{{2}, 1e-5, true, true}), 4e-6},
            {{x}, attrs_of(LayerNorm{{2}, 1e-5, false, false}), 4e-6},
            {{x, row}, attrs_of(LayerNorm{{2}, 1e-3, true, false}), 4e-6},
            {{x, {{f32, {1, 3, 8}}}}, attrs_of(LayerNorm{{1, 2}, 1e-5, false, true}), 4e-6},
            {{x, {{f32, {1, 3, 1}}}, {{f32, {1, 3, 1}}}}, attrs_of(LayerNorm{{1}, 1e-5, true, true}), 4e-6},
            {{{{f32, {4, 8}}, 999, 1001}}, attrs_of(LayerNorm{{1}, 1e-5, false, false}), 2e-4},  // f32 keeps the mean to 6e-5
            {{{{bf16, {4, 16}}}, {{bf16, {1, 16}}}, {{bf16, {1, 16}}}}, attrs_of(LayerNorm{{1}, 1e-5, true, true}), 4e-6},
            {{{{f64, {4, 16}}}, {{f64, {1, 16}}}}, attrs_of(LayerNorm{{1}, 1e-12, true, false}), 4e-6}};
  }
};
const Op<LayerNorm> layer_norm_op;

struct RmsNorm {
  static constexpr OpKind kind = OpKind::composite;
  static constexpr std::string_view name = "rms_norm";
  static constexpr std::string_view formula = "x / sqrt(mean(x^2) + eps) * gamma + beta, mean over `axes` (Zhang & Sennrich 2019)";
  Axes axes;
  double eps = 1e-6;
  bool has_gamma = false, has_beta = false;
  static auto fields() { return Fields<&RmsNorm::axes, &RmsNorm::eps, &RmsNorm::has_gamma, &RmsNorm::has_beta>{}; }
  static Value body(const RmsNorm& op, In operands) {
    check_operands(name, operands, 1u + op.has_gamma + op.has_beta, "x, gamma, beta");
    std::size_t next = 1;
    Value gamma = next_if(op.has_gamma, operands, next), beta = next_if(op.has_beta, operands, next), v = widen(operands[0]);
    return affine(v * rsqrt(mean(v * v, op.axes, true) + op.eps), gamma, beta, operands[0].dtype());
  }
  static std::vector<Sample> samples() {
    const Sample::Operand x{{f32, {2, 3, 8}}, -3, 3}, row{{f32, {1, 1, 8}}, 0.5, 2};
    return {{{x, row}, attrs_of(RmsNorm{{2}, 1e-6, true, false}), 4e-6},
            {{x}, attrs_of(RmsNorm{{1, 2}, 1e-5, false, false}), 4e-6},
            {{x, row, row}, attrs_of(RmsNorm{{2}, 1e-6, true, true}), 4e-6},
            {{{{bf16, {4, 16}}}, {{bf16, {1, 16}}}}, attrs_of(RmsNorm{{1}, 1e-6, true, false}), 4e-6},
            {{{{f64, {4, 16}}}}, attrs_of(RmsNorm{{0}, 1e-6, false, false}), 4e-6}};
  }
};
const Op<RmsNorm> rms_norm_op;

struct GroupNorm {
  static constexpr OpKind kind = OpKind::composite;
  static constexpr std::string_view name = "group_norm";
  static constexpr std::string_view formula =
      "layer_norm over each of `groups` equal runs of channels (axis `axis`) and all axes behind, * gamma + beta";
  Axis axis = 1;
  std::int64_t groups = 1;
  double eps = 1e-5;
  bool has_gamma = false, has_beta = false;
  static auto fields() {
    return Fields<&GroupNorm::axis, &GroupNorm::groups, &GroupNorm::eps, &GroupNorm::has_gamma, &GroupNorm::has_beta>{};
  }
  static Value body(const GroupNorm& op, In operands) {
    check_operands(name, operands, 1u + op.has_gamma + op.has_beta, "x, gamma, beta");
    std::size_t next = 1;
    Value gamma = next_if(op.has_gamma, operands, next), beta = next_if(op.has_beta, operands, next), x = operands[0];
    const auto run = op.groups > 0 ? Dim::exact_div(x.dim(op.axis), op.groups) : std::nullopt;
    if (!run)
      fail("rlx.group_norm: {} channels of {} do not divide into {} groups", x.dim(op.axis).to_string(), x.type().to_string(), op.groups);
    Dims grouped = x.shape();
    grouped[static_cast<std::size_t>(op.axis)] = op.groups;
    grouped.insert(grouped.begin() + op.axis + 1, *run);
    Axes inside;
    for (auto axis = op.axis + 1; axis < static_cast<std::int64_t>(grouped.size()); ++axis) inside.values.push_back(axis);
    Value normal = reshape(standardize(reshape(widen(x), grouped), inside, op.eps), x.shape());
    return affine(normal, gamma, beta, x.dtype());
  }
  static std::vector<Sample> samples() {
    const Sample::Operand x{{f32, {2, 6, 3, 2}}, -3, 3}, channels{{f32, {1, 6, 1, 1}}, 0.5, 2};
    return {{{x, channels, channels}, attrs_of(GroupNorm{1, 3, 1e-5, true, true}), 4e-6},
            {{x}, attrs_of(GroupNorm{1, 6, 1e-5, false, false}), 4e-6},
            {{{{bf16, {2, 4, 5}}}, {{bf16, {1, 4, 1}}}}, attrs_of(GroupNorm{1, 2, 1e-5, true, false}), 4e-6},
            {{{{f64, {2, 4}}}}, attrs_of(GroupNorm{1, 1, 1e-5, false, false}), 4e-6}};
  }
};
const Op<GroupNorm> group_norm_op;

struct BatchNorm {
  static constexpr OpKind kind = OpKind::composite;
  static constexpr std::string_view name = "batch_norm";
  static constexpr std::string_view formula = "(x - mean) / sqrt(var + eps) * gamma + beta with given statistics";
  double eps = 1e-5;
  bool has_gamma = false, has_beta = false;
  static auto fields() { return Fields<&BatchNorm::eps, &BatchNorm::has_gamma, &BatchNorm::has_beta>{}; }
  static Value body(const BatchNorm& op, In operands) {
    check_operands(name, operands, 3u + op.has_gamma + op.has_beta, "x, mean, var, gamma, beta");
    std::size_t next = 3;
    Value gamma = next_if(op.has_gamma, operands, next), beta = next_if(op.has_beta, operands, next), x = operands[0];
    Value scale = rsqrt(widen(operands[2]) + op.eps);
    return affine((widen(x) - widen(operands[1])) * scale, gamma, beta, x.dtype());
  }
  static std::vector<Sample> samples() {
    const Sample::Operand x{{f32, {2, 3, 4}}, -3, 3}, centre{{f32, {1, 3, 1}}}, positive{{f32, {1, 3, 1}}, 0.5, 2};
    return {{{x, centre, positive, positive, centre}, attrs_of(BatchNorm{1e-5, true, true}), 4e-6},
            {{x, centre, positive}, attrs_of(BatchNorm{1e-3, false, false}), 4e-6},
            {{{{bf16, {4, 3}}}, {{f32, {1, 3}}}, {{f32, {1, 3}}, 0.5, 2}}, attrs_of(BatchNorm{1e-5, false, false}), 4e-6}};
  }
};
const Op<BatchNorm> batch_norm_op;

struct BatchNormTraining {
  static constexpr OpKind kind = OpKind::composite;
  static constexpr std::string_view name = "batch_norm_training";
  static constexpr std::string_view formula =
      "y by the batch's mean and biased variance over `axes`; running mean and variance moved by `momentum` towards the batch's, the "
      "variance unbiased";
  Axes axes;
  double eps = 1e-5, momentum = 0.1;
  bool has_gamma = false, has_beta = false;
  static auto fields() {
    return Fields<&BatchNormTraining::axes, &BatchNormTraining::eps, &BatchNormTraining::momentum, &BatchNormTraining::has_gamma,
                  &BatchNormTraining::has_beta>{};
  }
  static Value moved(Value running, Value batch, double momentum) {
    return cast(widen(running) * (1 - momentum) + batch * momentum, running.dtype());
  }
  static Values body(const BatchNormTraining& op, In operands) {
    check_operands(name, operands, 3u + op.has_gamma + op.has_beta, "x, mean, var, gamma, beta");
    std::size_t next = 3;
    Value gamma = next_if(op.has_gamma, operands, next), beta = next_if(op.has_beta, operands, next), x = operands[0], v = widen(x);
    Value centre = mean(v, op.axes, true), centred = v - centre, biased = mean(centred * centred, op.axes, true);
    Value count = size_of(v, op.axes, v.dtype());
    return {affine(centred * rsqrt(biased + op.eps), gamma, beta, x.dtype()), moved(operands[1], centre, op.momentum),
            moved(operands[2], biased * (count / (count - 1)), op.momentum)};
  }
  static std::vector<Sample> samples() {
    const Sample::Operand x{{f32, {4, 3, 5}}, -3, 3}, centre{{f32, {1, 3, 1}}}, positive{{f32, {1, 3, 1}}, 0.5, 2};
    return {{{x, centre, positive, positive, centre}, attrs_of(BatchNormTraining{{0, 2}, 1e-5, 0.1, true, true}), 4e-6},
            {{x, centre, positive}, attrs_of(BatchNormTraining{{0, 2}, 1e-3, 0.3, false, false}), 4e-6}};
  }
};
const Op<BatchNormTraining> batch_norm_training_op;

struct LocalResponseNorm {
  static constexpr OpKind kind = OpKind::composite;
  static constexpr std::string_view name = "local_response_norm";
  static constexpr std::string_view formula =
      "x / (k + alpha / size * sum of x^2 over `size` neighbours along `axis`)^beta; size / 2 of them before x";
  Axis axis = 1;
  std::int64_t size = 5;
  double alpha = 1e-4, beta = 0.75, k = 1;
  static auto fields() {
    return Fields<&LocalResponseNorm::axis, &LocalResponseNorm::size, &LocalResponseNorm::alpha, &LocalResponseNorm::beta,
                  &LocalResponseNorm::k>{};
  }
  static Value body(const LocalResponseNorm& op, Value x) {
    if (op.size < 1) fail("rlx.local_response_norm: size {} (allowed: >= 1)", op.size);
    return in_wide(name, x, [&](Value v) {
      Dims lo(v.shape().size(), 0), hi = lo;
      lo[static_cast<std::size_t>(op.axis)] = op.size / 2;
      hi[static_cast<std::size_t>(op.axis)] = (op.size - 1) / 2;
      Value neighbours = sum(window(pad(v * v, lo, hi), op.axis, op.size), {op.axis + 1});
      return v / pow(neighbours * (op.alpha / static_cast<double>(op.size)) + op.k, like(v, op.beta));
    });
  }
  static std::vector<Sample> samples() {
    return {{{{{f32, {2, 7, 3}}}}, attrs_of(LocalResponseNorm{1, 5, 0.01, 0.75, 1}), 4e-6},
            {{{{f32, {6, 4}}}}, attrs_of(LocalResponseNorm{0, 2, 0.5, 0.5, 2}), 4e-6}};
  }
};
const Op<LocalResponseNorm> local_response_norm_op;

struct L2Normalize {
  static constexpr OpKind kind = OpKind::composite;
  static constexpr std::string_view name = "l2_normalize";
  static constexpr std::string_view formula = "x / max(sqrt(sum(x^2)), eps) over `axes`";
  Axes axes;
  double eps = 1e-12;
  static auto fields() { return Fields<&L2Normalize::axes, &L2Normalize::eps>{}; }
  static Value body(const L2Normalize& op, Value x) {
    return in_wide(name, x, [&](Value v) { return v / max(norm(v, op.axes, 2, true), like(v, op.eps)); });
  }
  static std::vector<Sample> samples() {
    return {{{{{f32, {3, 8}}}}, attrs_of(L2Normalize{{1}}), 4e-6},
            {{{{f32, {3, 4, 5}}}}, attrs_of(L2Normalize{{0, 2}}), 4e-6},
            {{{{bf16, {3, 8}}}}, attrs_of(L2Normalize{{1}}), 4e-6}};
  }
};
const Op<L2Normalize> l2_normalize_op;

}  // namespace

/// (x - mean) / sqrt(var + eps) * gamma + beta, statistics over `axes`. gamma and beta may be null; they have the sizes of `axes`, or
/// broadcast to x. The result has x's type.
Value layer_norm(Operand x, Operand gamma /*= {}*/, Operand beta /*= {}*/, Axes axes /*= {-1}*/, double eps /*= 1e-5*/) {
  gamma = aligned("layer_norm", gamma, x, axes);
  beta = aligned("layer_norm", beta, x, axes);
  return layer_norm_op.of({axes, eps, bool(gamma), bool(beta)}, listed({x, gamma, beta}));
}
/// x / sqrt(mean(x^2) + eps) * gamma + beta over `axes`; gamma and beta as in layer_norm.
Value rms_norm(Operand x, Operand gamma /*= {}*/, Axes axes /*= {-1}*/, double eps /*= 1e-6*/, Operand beta /*= {}*/) {
  gamma = aligned("rms_norm", gamma, x, axes);
  beta = aligned("rms_norm", beta, x, axes);
  return rms_norm_op.of({axes, eps, bool(gamma), bool(beta)}, listed({x, gamma, beta}));
}
/// Normalises each of `groups` equal runs of channels of x (N, C, spatial...) over the run and the spatial axes. gamma, beta: [C] or null.
Value group_norm(Operand x, std::int64_t groups, Operand gamma /*= {}*/, Operand beta /*= {}*/, double eps /*= 1e-5*/, Axis axis /*= 1*/) {
  gamma = aligned("group_norm", gamma, x, {axis});
  beta = aligned("group_norm", beta, x, {axis});
  return group_norm_op.of({axis, groups, eps, bool(gamma), bool(beta)}, listed({x, gamma, beta}));
}
/// layer_norm over the channels of each pixel of x (N, C, H, W). gamma, beta: [C] or null.
Value layer_norm_2d(Operand x, Operand gamma /*= {}*/, Operand beta /*= {}*/, double eps /*= 1e-6*/) {
  return layer_norm(x, gamma, beta, {1}, eps);
}
/// Normalises each channel of each example of x (N, C, spatial...) over the spatial axes. gamma, beta: [C] or null.
Value instance_norm(Operand x, Operand gamma /*= {}*/, Operand beta /*= {}*/, double eps /*= 1e-5*/) {
  Axes spatial;
  for (std::int64_t axis = 2; axis < x.rank(); ++axis) spatial.values.push_back(axis);
  if (spatial.size() == 0) fail("rlx.instance_norm: {} has no axes behind the channels (allowed: N, C, spatial...)", x.type().to_string());
  return layer_norm(x, aligned("instance_norm", gamma, x, {1}), aligned("instance_norm", beta, x, {1}), spatial, eps);
}
/// (x - mean) / sqrt(var + eps) * gamma + beta with given statistics: mean, var, gamma, beta have the size of axis `axis` of x; the last
/// two may be null.
Value batch_norm(Operand x, Operand mean, Operand var, Operand gamma /*= {}*/, Operand beta /*= {}*/, double eps /*= 1e-5*/,
                 Axis axis /*= 1*/) {
  gamma = aligned("batch_norm", gamma, x, {axis});
  beta = aligned("batch_norm", beta, x, {axis});
  return batch_norm_op.of({eps, bool(gamma), bool(beta)},
                          listed({x, aligned("batch_norm", mean, x, {axis}), aligned("batch_norm", var, x, {axis}), gamma, beta}));
}
/// Normalises x by its own mean and biased variance over all axes but `axis`. Gives y, the new running mean and the new running
/// variance: running * (1 - momentum) + batch * momentum, the batch's variance unbiased.
Values batch_norm_training(Operand x, Operand running_mean, Operand running_var, Operand gamma /*= {}*/, Operand beta /*= {}*/,
                           double momentum /*= 0.1*/, double eps /*= 1e-5*/, Axis axis /*= 1*/) {
  Axes others;
  for (std::int64_t i = 0; i < x.rank(); ++i)
    if (i != normalize_axis("batch_norm_training", axis, x.type())) others.values.push_back(i);
  gamma = aligned("batch_norm_training", gamma, x, {axis});
  beta = aligned("batch_norm_training", beta, x, {axis});
  Values results = batch_norm_training_op.all({others, eps, momentum, bool(gamma), bool(beta)},
                                              listed({x, aligned("batch_norm_training", running_mean, x, {axis}),
                                                      aligned("batch_norm_training", running_var, x, {axis}), gamma, beta}));
  return {results[0], reshape(results[1], running_mean.shape()), reshape(results[2], running_var.shape())};
}
/// x divided by a power of the sum of squares of `size` neighbours along `axis`; alpha is divided by size, as in PyTorch.
Value local_response_norm(Operand x, std::int64_t size, double alpha /*= 1e-4*/, double beta /*= 0.75*/, double k /*= 1*/,
                          Axis axis /*= 1*/) {
  return local_response_norm_op({axis, size, alpha, beta, k}, x);
}
/// x / max(|x|, eps) with the 2-norm over `axes`; the shape stays.
Value l2_normalize(Operand x, Axes axes /*= {-1}*/, double eps /*= 1e-12*/) { return l2_normalize_op({axes, eps}, x); }
/// g * v / |v| with the 2-norm over all axes but `axis`; g has size 1 along those (Salimans & Kingma 2016).
Value weight_norm(Operand v, Operand g, Axis axis /*= 0*/) {
  Axes others;
  for (std::int64_t i = 0; i < v.rank(); ++i)
    if (i != normalize_axis("weight_norm", axis, v.type())) others.values.push_back(i);
  return v * (g / norm(v, others, 2, true));
}

}  // namespace rlx
