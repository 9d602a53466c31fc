// Recurrences over a sequence, several steps at a time.
#include <algorithm>
#include <cmath>

#include "backends/mlx/library/call.h"

namespace rlx::mlx {
namespace {

/// Steps that meet in products. Powers of a matrix of more have large elements that cancel.
constexpr int chunk = 8;

/// Steps begin..end-1 of (batch, heads, steps, ...).
mx::array steps_of(const mx::array& x, int begin, int end) {
  mx::Shape start(x.ndim(), 0), stop = x.shape();
  start[2] = begin, stop[2] = end;
  return mx::slice(x, start, stop);
}
mx::array by_head(const mx::array& x) { return mx::swapaxes(wide(x), 1, 2); }
mx::array turned(const mx::array& x) { return mx::swapaxes(x, -1, -2); }

/// d with d = r + m d, where m has zeros on and above its diagonal: (1 + m)(1 + m^2)(1 + m^4) r.
mx::array solved(mx::array m, mx::array r) {
  for (int power = 1; power < chunk; power *= 2) {
    if (power > 1) m = mx::matmul(m, m);
    r = mx::add(r, mx::matmul(m, r));
  }
  return r;
}

/// The chunk form of Yang et al. 2024. With G the sum of gates until a step, d solves d = beta (v - e^G k S) - beta [e^(G - G') k k'] d'
/// over earlier steps, and the results are products with d.
Results gated_delta_net(const Call& c) {
  const mx::array q = by_head(c.x[0]), k = by_head(c.x[1]), v = by_head(c.x[2]), g = by_head(c.x[3]), beta = by_head(c.x[4]);
  const int steps = q.shape(2);
  const mx::array scale(1 / std::sqrt(static_cast<float>(q.shape(3)))), zero(0.0F);
  mx::array state = c.flag("has_state") ? wide(c.x[5]) : mx::zeros({q.shape(0), q.shape(1), q.shape(3), v.shape(3)});
  std::vector<mx::array> results;
  for (int begin = 0; begin < steps; begin += chunk) {
    const auto part = [&](const mx::array& x) { return steps_of(x, begin, std::min(begin + chunk, steps)); };
    const mx::array keys = part(k), queries = mx::multiply(part(q), scale), mixed = mx::expand_dims(part(beta), -1);
    const mx::array until = mx::expand_dims(mx::cumsum(part(g), 2), -1), decay = mx::exp(until);
    const mx::array apart = mx::subtract(until, turned(until));
    const mx::array seen = mx::tril(mx::ones({keys.shape(2), keys.shape(2)}, mx::bool_)), before = mx::tril(seen, -1);
    const mx::array fades = mx::exp(mx::where(seen, apart, zero));
    const mx::array among = mx::multiply(mx::multiply(mx::matmul(keys, turned(keys)), fades), mx::negative(mixed));
    const mx::array recalled = mx::multiply(mx::matmul(keys, state), decay);
    const mx::array d = solved(mx::where(before, among, zero), mx::multiply(mx::subtract(part(v), recalled), mixed));
    const mx::array read = mx::where(seen, mx::multiply(mx::matmul(queries, turned(keys)), fades), zero);
    results.push_back(mx::add(mx::multiply(mx::matmul(queries, state), decay), mx::matmul(read, d)));
    const mx::array last = steps_of(until, until.shape(2) - 1, until.shape(2));
    const mx::array kept = mx::multiply(keys, mx::exp(mx::subtract(last, until)));
    state = mx::add(mx::multiply(state, mx::exp(last)), mx::matmul(turned(kept), d));
    if (!c.traced && begin / chunk % 4 == 3) mx::eval(state, results.back());  // so that what waits to be computed stays small
  }
  const mx::array y = mx::swapaxes(mx::concatenate(std::move(results), 2), 1, 2);
  return std::vector<mx::array>{as(y, c.x[0].dtype()), state};
}

/// Many steps of h' = e^(delta A) h + delta B x at a time, whose products and sums meet in one array (batch, steps, channels, states).
Results selective_scan(const Call& c) {
  constexpr int most = 64;
  const mx::array x = wide(c.x[0]), delta = wide(c.x[1]), transition = wide(c.x[2]), b = wide(c.x[3]), read = wide(c.x[4]);
  const int steps = x.shape(1);
  mx::array state = c.flag("has_state") ? wide(c.x.back()) : mx::zeros({x.shape(0), x.shape(2), b.shape(2)});
  std::vector<mx::array> results;
  for (int begin = 0; begin < steps; begin += most) {
    const auto part = [&](const mx::array& of, int axis) {
      mx::Shape start(of.ndim(), 0), stop = of.shape();
      start[1] = begin, stop[1] = std::min(begin + most, steps);
      return mx::expand_dims(mx::slice(of, start, stop), axis);
    };
    const mx::array span = part(delta, 3);  // (b, s, h, 1)
    const mx::array added = mx::multiply(mx::multiply(span, part(x, 3)), part(b, 2));
    const auto [faded, fresh] = recurred(mx::exp(mx::multiply(span, transition)), added, 1);
    const mx::array all = mx::add(mx::multiply(faded, mx::expand_dims(state, 1)), fresh);
    results.push_back(mx::sum(mx::multiply(all, part(read, 2)), -1));
    state = mx::take(all, all.shape(1) - 1, 1);
    if (!c.traced) mx::eval(state, results.back());  // so that what waits to be computed stays small
  }
  mx::array y = mx::concatenate(std::move(results), 1);
  if (c.flag("has_skip")) y = mx::add(y, mx::multiply(x, wide(c.x[5])));
  return std::vector<mx::array>{as(y, c.x[0].dtype()), state};
}

bool is_narrow(const Graph& graph, const Node& node) {
  return std::ranges::all_of(node.operands, [&](ValueId v) { return graph.type(v).dtype != f64; });
}

}  // namespace

Rows recurrent_rows() {
  static constexpr Row<Rule> rows[] = {{"gated_delta_net", gated_delta_net, is_narrow, "composed of other ops"},
                                       {"selective_scan", selective_scan, is_narrow, "composed of other ops"}};
  return rows;
}

}  // namespace rlx::mlx
