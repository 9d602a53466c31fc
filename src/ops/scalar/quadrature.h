#pragma once
#include <cmath>

#include "ir/sources.h"
#include "ops/wide.h"

namespace rlx {

/// Nodes and weights for integrals of decaying functions over 0..infinity, v = e^(t - e^-t) at equal steps of t (Takahasi and Mori, Double
/// exponential formulas, 1974). The decay must lie between e^-v and e^(-v^2 / 2), or begin faster than it goes on; then the error is below
/// 1e-13.
struct Quadrature {
  static constexpr int first = -50, last = 52;
  static constexpr double step = 1.0 / 12;
  Value nodes, weights;

  explicit Quadrature(Value near) {
    Array v(f64, {last - first + 1}), w = Array(f64, {last - first + 1});
    for (int i = first; i <= last; ++i) {
      const double t = i * step, node = std::exp(t - std::exp(-t));
      v.set_double(i - first, node);
      w.set_double(i - first, step * node * (1 + std::exp(-t)));
    }
    nodes = make_constant(near.graph(), v);
    weights = make_constant(near.graph(), w);
  }

  /// The axis of the nodes behind those of v.
  static Value over_nodes(Value v) { return expand_dims(v, {-1}); }
};

}  // namespace rlx
