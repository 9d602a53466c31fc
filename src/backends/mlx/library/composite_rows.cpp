// Composites that MLX computes whole.
#include <cmath>
#include <limits>
#include <numbers>

#include "backends/mlx/library/call.h"

namespace rlx::mlx {
namespace {

Results softmax(const Call& c) { return as(mx::softmax(wide(c.x[0]), c.axis(), true), c.x[0].dtype()); }

/// What attention adds to scores: MLX takes one mask. Rows that see nothing are the caller's to clear.
struct Scores {
  std::optional<mx::array> seen, bias;

  void see(const mx::array& keys) { seen = seen ? mx::logical_and(*seen, keys) : keys; }
};

/// Position of each query minus position of each key.
mx::array distances(const Call& c, const std::optional<mx::array>& positions) {
  const int queries = c.x[0].shape(-2), keys = c.x[1].shape(-2);
  const mx::array key = mx::arange(0, keys);
  if (!positions) return mx::subtract(mx::reshape(mx::arange(keys - queries, keys), {queries, 1}), key);
  return mx::subtract(mx::expand_dims(mx::expand_dims(as(*positions, mx::int32), -2), -1), key);
}

Scores scores_of(const Call& c) {
  Scores scores;
  std::size_t next = 3;
  if (c.flag("has_mask")) scores.see(c.x[next++]);
  if (c.flag("has_bias")) scores.bias = as(c.x[next++], mx::float32);
  const std::int64_t window = c.number("window");
  if (!c.flag("causal") && window == 0) return scores;
  const mx::array apart = distances(c, c.flag("has_positions") ? std::optional(c.x[next]) : std::nullopt);
  scores.see(mx::greater_equal(apart, mx::array(0)));
  if (window > 0) scores.see(mx::less(apart, mx::array(static_cast<int>(std::min<std::int64_t>(window, 1 << 30)))));
  return scores;
}

/// Of the causal form MLX has a mode, as long as each query sees a key.
bool is_plainly_causal(const Call& c) {
  return c.flag("causal") && c.number("window") == 0 && !c.flag("has_mask") && !c.flag("has_bias") && !c.flag("has_positions") &&
         c.x[0].shape(-2) <= c.x[1].shape(-2);
}

/// Scores beyond those that are seen are -infinity; a row of them alone is NaN or a mean in MLX, and 0 here.
Results attention(const Call& c) {
  const auto with_batch = [](const mx::array& x) { return x.ndim() == 3 ? mx::expand_dims(x, 0) : x; };
  const mx::array q = with_batch(wide(c.x[0])), k = with_batch(wide(c.x[1])), v = with_batch(wide(c.x[2]));
  const double given = c.attr<double>("scale");
  const auto scale = static_cast<float>(given != 0 ? given : 1 / std::sqrt(static_cast<double>(q.shape(-1))));
  const auto result = [&](const mx::array& y) { return as(mx::reshape(y, c.shape()), c.x[0].dtype()); };
  if (is_plainly_causal(c)) return result(mx::fast::scaled_dot_product_attention(q, k, v, scale, "causal"));
  const Scores scores = scores_of(c);
  if (!scores.seen && !scores.bias) return result(mx::fast::scaled_dot_product_attention(q, k, v, scale));
  const mx::array none(-std::numeric_limits<float>::infinity());
  const mx::array bias = scores.bias.value_or(mx::array(0.0F));
  const mx::array added = scores.seen ? mx::where(*scores.seen, bias, none) : bias;
  const mx::array sees = mx::any(mx::greater(added, none), std::vector<int>{-1}, true);
  const mx::array mask = mx::broadcast_to(mx::where(sees, added, mx::array(0.0F)), {q.shape(0), q.shape(1), q.shape(2), k.shape(2)});
  const mx::array y = mx::fast::scaled_dot_product_attention(q, k, v, scale, "", mask);
  return result(mx::where(sees, y, mx::array(0.0F)));
}

/// The operand behind `next` as a row, where it is there.
std::optional<mx::array> row_if(bool there, const Call& c, std::size_t& next, int size) {
  if (!there) return std::nullopt;
  const mx::array& x = c.x[next++];
  return mx::reshape(wide(x), {size});
}

template <bool centred>
Results norm(const Call& c) {
  const mx::array x = wide(c.x[0]);
  std::size_t next = 1;
  const auto gamma = row_if(c.flag("has_gamma"), c, next, x.shape(-1)), beta = row_if(c.flag("has_beta"), c, next, x.shape(-1));
  const auto eps = static_cast<float>(c.attr<double>("eps"));
  if (centred) return as(mx::fast::layer_norm(x, gamma, beta, eps), c.x[0].dtype());
  const mx::array y = mx::fast::rms_norm(x, gamma, eps);
  return as(beta ? mx::add(y, *beta) : y, c.x[0].dtype());
}

/// Angles lose their bits in f32: they are brought to one turn in f64, which is enough for its sine.
Results rope(const Call& c) {
  const mx::array angles = mx::multiply(as(c.x[1], mx::float64), as(c.x[2], mx::float64));
  const mx::array turn(2 * std::numbers::pi, mx::float64);
  const mx::array rest = as(mx::subtract(angles, mx::multiply(mx::round(mx::divide(angles, turn), 0), turn)), mx::float32);
  const mx::array magnitude(static_cast<float>(c.attr<double>("magnitude")));
  const mx::array cosine = mx::multiply(mx::cos(rest), magnitude), sine = mx::multiply(mx::sin(rest), magnitude);
  const mx::array x = wide(c.x[0]);
  const int pairs = rest.shape(-1), last = static_cast<int>(x.ndim()) - 1;
  const bool half = c.word("style") == "half";
  const auto part = [&](int begin, int end, int step) {
    mx::Shape start(x.ndim(), 0), stop = x.shape(), stride(x.ndim(), 1);
    start.back() = begin, stop.back() = end, stride.back() = step;
    return mx::slice(x, start, stop, stride);
  };
  const mx::array a = half ? part(0, pairs, 1) : part(0, 2 * pairs, 2), b = half ? part(pairs, 2 * pairs, 1) : part(1, 2 * pairs, 2);
  const mx::array first = mx::subtract(mx::multiply(a, cosine), mx::multiply(b, sine));
  const mx::array second = mx::add(mx::multiply(b, cosine), mx::multiply(a, sine));
  mx::Shape front = x.shape();
  front.back() = 2 * pairs;
  std::vector<mx::array> parts{half ? mx::concatenate({first, second}, last) : mx::reshape(mx::stack({first, second}, -1), front)};
  if (2 * pairs < x.shape(-1)) parts.push_back(part(2 * pairs, x.shape(-1), 1));
  return as(mx::concatenate(std::move(parts), last), c.x[0].dtype());
}

bool is_f64(const Graph& graph, const Node& node) { return graph.type(node.operands[0]).dtype == f64; }
bool keeps_nan(const Graph& graph, const Node& node) { return !std::get<bool>(node.attrs[1]) && !is_f64(graph, node); }
bool is_uncapped(const Graph& graph, const Node& node) {
  const int rank = graph.type(node.operands[0]).rank();
  return std::get<double>(node.attrs[1]) == 0 && (rank == 3 || rank == 4) && !is_f64(graph, node);
}
bool is_along_rows(const Graph& graph, const Node& node) {
  const Type& x = graph.type(node.operands[0]);
  const auto& axes = std::get<std::vector<std::int64_t>>(node.attrs[0]);
  if (axes.size() != 1 || (axes[0] != x.rank() - 1 && axes[0] != -1) || is_f64(graph, node)) return false;
  for (std::size_t i = 1; i < node.operands.size(); ++i)
    if (!(graph.type(node.operands[i]).size() == x.shape.back()) || !(graph.type(node.operands[i]).shape.back() == x.shape.back()))
      return false;
  return true;
}
bool is_turned_in_f32(const Graph& graph, const Node& node) { return !is_f64(graph, node); }

constexpr std::string_view composed = "composed of other ops";

}  // namespace

Rows composite_rows() {
  static constexpr Row<Rule> rows[] = {
      {"softmax", softmax, keeps_nan, composed},           {"attention", attention, is_uncapped, composed},
      {"layer_norm", norm<true>, is_along_rows, composed}, {"rms_norm", norm<false>, is_along_rows, composed},
      {"rope", rope, is_turned_in_f32, composed},
  };
  return rows;
}

}  // namespace rlx::mlx
