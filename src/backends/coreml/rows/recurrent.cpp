// Recurrent layers by CoreML's own operations, which read weights that are the same in every run. Its gated units reset before the product;
// that they do so behind it, from iOS 18 on, is marked as failing by coremltools' own comparison with PyTorch (rdar://128479517).
#include <algorithm>
#include <array>

#include "backends/coreml/operations.h"
#include "ir/sources.h"

namespace rlx::coreml {
namespace {

/// The gates of a weight (gates * hidden, ...) or the sum of two biases in another order, as f32.
Array in_order(std::span<const Weight* const> parts, const Sizes& order) {
  const Array& first = parts[0]->array;
  Array result(f32, first.shape());
  const std::int64_t gate = first.size() / static_cast<std::int64_t>(order.size());
  for (std::size_t g = 0; g < order.size(); ++g)
    for (std::int64_t i = 0; i < gate; ++i) {
      double sum = 0;
      for (const Weight* part : parts) sum += part->array.get_double(order[g] * gate + i);
      result.set_double(static_cast<std::int64_t>(g) * gate + i, sum);
    }
  return result;
}

/// Layers over (s, b, features), one in each direction after the other.
class Layers {
 public:
  Layers(const Call& c, std::size_t states, Sizes order, Arguments activations)
      : c_(c),
        states_(states),
        order_(std::move(order)),
        activations_(std::move(activations)),
        next_(1 + (c_.flag("has_state") ? states : 0)) {}

  Tensors results() {
    const std::int64_t sides = c_.flag("bidirectional") ? 2 : 1, runs = c_.number("layers") * sides;
    std::vector<Tensors> last(states_);
    Tensor y = transpose(c_.out, c_.x[0], {1, 0, 2});
    for (std::int64_t run = 0; run < runs; run += sides) {
      Tensors both;
      for (std::int64_t side = 0; side < sides; ++side) {
        const Tensors made = layer(y, run + side, side == 1 ? Sizes{0} : Sizes{});
        both.push_back(made[0]);
        for (std::size_t s = 0; s < states_; ++s) last[s].push_back(made[s + 1]);
      }
      y = concat(c_.out, both, 2);
    }
    Tensors all{transpose(c_.out, y, {1, 0, 2})};
    for (const Tensors& state : last) all.push_back(concat(c_.out, state, 0));
    return all;
  }

 private:
  Tensor weights(std::size_t count) {
    std::array<const Weight*, 2> parts{};
    for (std::size_t i = 0; i < count; ++i) parts[i] = c_.weight(next_++);
    return c_.out.constant(in_order(std::span(parts).first(count), order_), c_.x[0].element, parts[0]->name);
  }
  Tensor first_state(std::size_t state, std::int64_t run, const Dims& shape) const {
    if (!c_.flag("has_state")) return filled(c_.out, c_.x[0].element, shape, 0);
    return reshape(c_.out, cut(c_.out, c_.x[1 + state], 0, run, run + 1), shape);
  }
  /// The outputs, and the last states (1, b, hidden); `turned`: the axis of steps, where it goes back.
  Tensors layer(const Tensor& x, std::int64_t run, const Sizes& turned) {
    const Tensor w = weights(1), u = weights(1);
    const Dims state{x.shape[1], u.shape[1]}, steps{x.shape[0], x.shape[1], u.shape[1]};
    Arguments arguments{{"x", reversed(c_.out, x, turned)}, {"initial_h", first_state(0, run, state)}};
    if (states_ > 1) arguments.emplace_back("initial_c", first_state(1, run, state));
    arguments.insert(arguments.end(), {{"weight_ih", w}, {"weight_hh", u}});
    if (c_.flag("has_bias")) arguments.emplace_back("bias", weights(2));
    arguments.insert(arguments.end(), {{"direction", Immediate("forward")}, {"output_sequence", Immediate(true)}});
    arguments.insert(arguments.end(), activations_.begin(), activations_.end());
    Tensors places{{{}, x.element, steps}};
    places.resize(1 + states_, {{}, x.element, state});
    Tensors made = c_.out.add_all(c_.node.op->name, arguments, std::move(places));
    made[0] = reversed(c_.out, made[0], turned);
    for (std::size_t s = 1; s < made.size(); ++s) made[s] = reshape(c_.out, made[s], {1, state[0], state[1]});
    return made;
  }

  const Call& c_;
  std::size_t states_;
  Sizes order_;
  Arguments activations_;
  std::size_t next_;  // weight
};

/// CoreML's gates lie as input, forget, output, cell.
Tensors lstm(const Call& c) {
  return Layers(c, 2, {0, 1, 3, 2},
                {{"recurrent_activation", Immediate("sigmoid")}, {"cell_activation", Immediate("tanh")}, {"activation", Immediate("tanh")}})
      .results();
}
Tensors rnn(const Call& c) { return Layers(c, 1, {0}, {{"activation", Immediate(c.flag("relu") ? "relu" : "tanh")}}).results(); }

/// Weights that do not depend on a run, and texts of one length.
bool has_its_layout(const Graph& graph, const Node& node) {
  const NodeView view{graph, node, {}};
  const auto is_same = [&](ValueId v) {
    const Node& from = graph.node(v.node);
    return constant_value(from) || (is_input(from) && input_from(from.attrs).kind == InputKind::param);
  };
  const std::size_t first = recurrent_weights(node);
  return !view.flag("has_lengths") && std::all_of(node.operands.begin() + static_cast<std::ptrdiff_t>(first), node.operands.end(), is_same);
}

}  // namespace

std::size_t recurrent_weights(const Node& node) {
  constexpr std::size_t has_state = 4;  // of the attributes
  if (node.op->name != "lstm" && node.op->name != "rnn") return node.operands.size();
  const std::size_t states = node.op->name == "lstm" ? 2 : 1;
  return 1 + (std::get<bool>(node.attrs[has_state]) ? states : 0);
}

Rows recurrent_rows() {
  static constexpr Row<Rule> rows[] = {{"lstm", lstm, has_its_layout}, {"rnn", rnn, has_its_layout}};
  return rows;
}

}  // namespace rlx::coreml
