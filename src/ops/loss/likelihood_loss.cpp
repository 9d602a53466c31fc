// Losses that are the negative logarithm of a density, and the triplet loss, with PyTorch's semantics.
#include <cmath>
#include <numbers>

#include "ops/loss/reduced.h"
#include "ops/wide.h"

namespace rlx {
namespace {

struct GaussianNll {
  static constexpr OpKind kind = OpKind::composite;
  static constexpr std::string_view name = "gaussian_nll";
  static constexpr std::string_view formula =
      "(log v + (x - target)^2 / v) / 2, v = max(variance, eps); with `full` also log(2 pi) / 2; operands x, target, variance";
  bool full = false;
  double eps = 1e-6;
  static auto fields() { return Fields<&GaussianNll::full, &GaussianNll::eps>{}; }
  static Value body(const GaussianNll& op, Value x, Value target, Value variance) {
    check_float(name, x);
    if (!(op.eps > 0)) fail("rlx.gaussian_nll: eps {} (allowed: > 0)", op.eps);
    Value wide = widen(variance), v = max(wide, like(wide, op.eps));
    Value loss = (log(v) + square(widen(x) - widen(target)) / v) * 0.5;
    return cast(op.full ? loss + 0.5 * std::log(2 * std::numbers::pi) : loss, x.dtype());
  }
  static std::vector<Sample> samples() {
    auto all = elementwise_samples(attrs_of(GaussianNll{}), 0.2, 2, true, 3);
    auto more = elementwise_samples(attrs_of(GaussianNll{true, 1e-3}), 0.2, 2, true, 3);
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
};
const Op<GaussianNll> gaussian_nll_op;

struct PoissonNll {
  static constexpr OpKind kind = OpKind::composite;
  static constexpr std::string_view name = "poisson_nll";
  static constexpr std::string_view formula =
      "e^x - target * x, or x - target * log(x + eps) without `log_input`; with `full` also t log t - t + log(2 pi t) / 2 for targets t "
      "> 1 (Stirling)";
  bool log_input = true, full = false;
  double eps = 1e-8;
  static auto fields() { return Fields<&PoissonNll::log_input, &PoissonNll::full, &PoissonNll::eps>{}; }
  static Value stirling(Value t) {
    Value large = gt(t, like(t, 1)), safe = select(large, t, like(t, 1));
    return select(large, safe * log(safe) - safe + log(safe * (2 * std::numbers::pi)) * 0.5, like(t, 0));
  }
  static Value body(const PoissonNll& op, Value input, Value target) {
    check_float(name, input);
    Value x = widen(input), t = widen(target);
    Value loss = op.log_input ? exp(x) - t * x : x - t * log(x + op.eps);
    return cast(op.full ? loss + stirling(t) : loss, input.dtype());
  }
  static std::vector<Sample> samples() {
    auto all = elementwise_samples(attrs_of(PoissonNll{}), -2, 2, true, 2);
    for (bool log_input : {false, true}) {
      auto more = elementwise_samples(attrs_of(PoissonNll{log_input, true, 1e-8}), 1.1, 3, true, 2);
      all.insert(all.end(), more.begin(), more.end());
    }
    return all;
  }
};
const Op<PoissonNll> poisson_nll_op;

struct TripletMargin {
  static constexpr OpKind kind = OpKind::composite;
  static constexpr std::string_view name = "triplet_margin";
  static constexpr std::string_view formula =
      "max(0, margin + d(x, positive) - d(x, negative)), d(a, b) the p-norm of a - b + eps along the last axis; with `swap` the nearer "
      "of x and positive counts against negative";
  double margin = 1, p = 2, eps = 1e-6;
  bool swap = false;
  static auto fields() { return Fields<&TripletMargin::margin, &TripletMargin::p, &TripletMargin::eps, &TripletMargin::swap>{}; }
  static Value body(const TripletMargin& op, Value x, Value positive, Value negative) {
    check_float(name, x);
    if (x.rank() < 1) fail("rlx.triplet_margin: x is {} (allowed: at least one axis)", x.type().to_string());
    auto distance = [&](Value a, Value b) { return norm(widen(a) - widen(b) + op.eps, {-1}, op.p); };
    Value against = distance(x, negative);
    if (op.swap) against = min(against, distance(positive, negative));
    return cast(relu(distance(x, positive) - against + op.margin), x.dtype());
  }
  static std::vector<Sample> samples() {
    std::vector<Sample> all;
    for (bool swap : {false, true})
      for (DType t : {f32, f64, bf16})
        for (double p : {2.0, 3.0}) {
          const Sample::Operand row{{t, {4, 5}}, -1, 1};
          all.push_back({{row, row, row}, attrs_of(TripletMargin{9, p, 1e-6, swap}), 4e-6});
        }
    return all;
  }
};
const Op<TripletMargin> triplet_margin_op;

}  // namespace

/// The negative log-likelihood of targets under Gaussians with mean x and the given variances, (log v + (x - target)^2 / v) / 2 with
/// v = max(variance, eps); full adds log(2 pi) / 2. The operands broadcast. Throws Error when eps <= 0.
Value gaussian_nll(Operand x, Operand target, Operand variance, bool full /*= false*/, double eps /*= 1e-6*/,
                   Reduction reduction /*= Reduction::mean*/) {
  std::tie(x, target) = match("gaussian_nll", x, target);
  std::tie(x, variance) = match("gaussian_nll", x, variance);
  return reduced(gaussian_nll_op({full, eps}, x, broadcast_to(cast(target, x.dtype()), x.shape()), variance), reduction);
}

/// The negative log-likelihood of counts under Poisson distributions: e^x - target * x for x the logarithm of the rate, or with log_input
/// = false x - target * log(x + eps) for x the rate. full adds Stirling's approximation of log(target!) for targets above 1.
Value poisson_nll(Operand x, Operand target, bool log_input /*= true*/, bool full /*= false*/, double eps /*= 1e-8*/,
                  Reduction reduction /*= Reduction::mean*/) {
  std::tie(x, target) = match("poisson_nll", x, target);
  return reduced(poisson_nll_op({log_input, full, eps}, x, target), reduction);
}

/// max(0, margin + d(anchor, positive) - d(anchor, negative)) for rows along the last axis, d(a, b) the p-norm of a - b + eps. swap: a
/// negative nearer to the positive counts by that distance (Balntas et al. 2016). The operands broadcast.
Value triplet_margin(Operand anchor, Operand positive, Operand negative, double margin /*= 1*/, double p /*= 2*/, double eps /*= 1e-6*/,
                     bool swap /*= false*/, Reduction reduction /*= Reduction::mean*/) {
  std::tie(anchor, positive) = match("triplet_margin", anchor, positive);
  std::tie(anchor, negative) = match("triplet_margin", anchor, negative);
  positive = broadcast_to(cast(positive, anchor.dtype()), anchor.shape());
  return reduced(triplet_margin_op({margin, p, eps, swap}, anchor, positive, negative), reduction);
}

}  // namespace rlx
