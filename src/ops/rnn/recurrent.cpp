// Recurrent layers as torch.nn has them: plain, gated (GRU) and with long short-term memory, in several layers and both directions.
#include "ops/wide.h"

namespace rlx {
namespace {

using In = std::span<const Value>;

/// The attributes that all kinds share. Operands: x, the lengths, the first states, then the weights of each layer and direction.
struct Layers {
  static constexpr OpKind kind = OpKind::composite;
  std::int64_t layers = 1;
  bool bidirectional = false, has_bias = true, has_lengths = false, has_state = false;
  static auto fields() {
    return Fields<&Layers::layers, &Layers::bidirectional, &Layers::has_bias, &Layers::has_lengths, &Layers::has_state>{};
  }
  std::size_t runs() const { return static_cast<std::size_t>(layers) * (bidirectional ? 2 : 1); }
  std::size_t weights_of_run() const { return has_bias ? 4 : 2; }
};

/// The layers of one kind of cell over its operands. A cell has a number of `gates` and `states`, of which the first is what the layer
/// gives, and a `step` to the next ones from what the input, the state and the biases contribute to the gates. `bias_with_state`: the
/// bias of the state belongs to its part alone, else it may be added to that of the input.
template <class Cell>
class Sequences {
 public:
  Sequences(const Cell& cell, In operands) : cell_(cell), x_(operands[0]), next_(operands.begin() + 1) {
    check_count(operands.size());
    if (cell.has_lengths) lengths_ = *next_++;
    for (std::int64_t i = 0; cell.has_state && i < Cell::states; ++i) first_.push_back(*next_++);
    hidden_ = next_[1].rank() == 2 ? next_[1].dim(1) : Dim(0);
    check();
  }

  Values results() {
    Value y = move_axis(widen(x_), 1, 0);  // (s, b, features)
    if (lengths_) keep_ = expand_dims(lt(iota(y, {y.dim(0), y.dim(1)}, i64), cast(lengths_, i64)), {-1});
    for (std::int64_t layer = 0; layer < cell_.layers; ++layer) {
      Values sides{run(y, false)};
      if (cell_.bidirectional) sides.push_back(run(y, true));
      y = concat(sides, -1);
    }
    Values all{cast(move_axis(y, 0, 1), x_.dtype())};
    for (const Values& states : last_) all.push_back(stack(states));
    return all;
  }

 private:
  void check_count(std::size_t given) const {
    if (cell_.layers < 1) fail("rlx.{}: {} layers (allowed: >= 1)", Cell::name, cell_.layers);
    const std::size_t states = cell_.has_state ? static_cast<std::size_t>(Cell::states) : 0;
    detail::check_arity(Cell::name, 1 + cell_.has_lengths + states + cell_.runs() * cell_.weights_of_run(), given);
  }
  static void check_shape(std::string_view what, Value v, const Dims& wanted) {
    if (!(v.shape() == wanted) || !is_float(v.dtype()))
      fail("rlx.{}: {} is {} (allowed: floats of shape {})", Cell::name, what, v.type().to_string(), to_string(wanted));
  }
  void check() const {
    check_float(Cell::name, x_);
    if (x_.rank() != 3) fail("rlx.{}: x is {} (allowed: [b, s, features])", Cell::name, x_.type().to_string());
    if (lengths_ && (!is_integer(lengths_.dtype()) || !(lengths_.shape() == Dims{x_.dim(0)})))
      fail("rlx.{}: the lengths are {} (allowed: integers of shape {})", Cell::name, lengths_.type().to_string(), to_string({x_.dim(0)}));
    const auto runs = static_cast<std::int64_t>(cell_.runs());
    for (Value state : first_) check_shape("the first state", state, {runs, x_.dim(0), hidden_});
    const Dim gates = hidden_ * Cell::gates;
    auto weight = next_;
    for (std::int64_t run = 0; run < runs; ++run) {
      const std::int64_t sides = cell_.bidirectional ? 2 : 1, layer = run / sides;
      check_shape(fmt::format("weight 0 of layer {}", layer), weight[0], {gates, layer == 0 ? x_.dim(2) : hidden_ * sides});
      check_shape(fmt::format("weight 1 of layer {}", layer), weight[1], {gates, hidden_});
      for (std::int64_t i = 2; i < static_cast<std::int64_t>(cell_.weights_of_run()); ++i)
        check_shape(fmt::format("weight {} of layer {}", i, layer), weight[i], {gates});
      weight += static_cast<std::ptrdiff_t>(cell_.weights_of_run());
    }
  }

  Value take_weight() { return widen(*next_++); }
  Values first_states(Value in) const {
    const auto place = static_cast<std::int64_t>(last_[0].size());
    Values states;
    for (Value all : first_) states.push_back(widen(squeeze(slice_axis(all, 0, place, place + 1), {0})));
    if (!cell_.has_state) states.assign(static_cast<std::size_t>(Cell::states), full(in, {in.dim(1), hidden_}, 0, in.dtype()));
    return states;
  }

  /// One layer in one direction over `in` (s, b, features): its outputs (s, b, hidden).
  Value run(Value in, bool reverse) {
    const Values states = first_states(in);
    const Value w = take_weight(), u = take_weight();
    Value bias = cell_.has_bias ? take_weight() : Value(), own;
    if (cell_.has_bias && Cell::bias_with_state) own = take_weight();
    else if (cell_.has_bias) bias = bias + take_weight();
    Values xs{linear(in, w, bias)};  // of all steps, as one product
    if (keep_) xs.push_back(keep_);
    const auto step = [&](const Values& state, const Values& at) {
      Values next = cell_.step(at[0], linear(state[0], u, own), state);
      if (!keep_) return std::pair{next, Values{next[0]}};
      const Value y = select(at[1], next[0], like(next[0], 0));
      for (std::size_t i = 0; i < next.size(); ++i) next[i] = select(at[1], next[i], state[i]);
      return std::pair{next, Values{y}};
    };
    const Values results = scan(step, states, xs, {}, reverse);
    for (std::size_t i = 0; i < last_.size(); ++i) last_[i].push_back(results[i]);
    return results.back();
  }

  const Cell& cell_;
  Value x_, lengths_, keep_;  // keep: where a step lies within its text, (s, b, 1)
  In::iterator next_;         // operand
  Dim hidden_ = 0;
  Values first_;                                                      // by state
  std::vector<Values> last_{static_cast<std::size_t>(Cell::states)};  // by state, then by layer and direction
};

/// Samples without and with all that is optional. Weights below 1 / sqrt(hidden) keep the gates off their limits.
template <class Cell>
std::vector<Sample> samples_of(Cell cell, double low = -0.7, double high = 0.7) {
  const std::int64_t b = 2, s = 3, features = 3, hidden = 2, gates = hidden * Cell::gates;
  const auto operand = [&](const Dims& shape) { return Sample::Operand{{f32, shape}, low, high}; };
  std::vector<Sample> all;
  for (bool whole : {false, true}) {
    cell.layers = whole ? 2 : 1;
    cell.bidirectional = cell.has_bias = cell.has_lengths = cell.has_state = whole;
    Sample sample{{operand({b, s, features})}, attrs_of(cell), 4e-6};
    if (whole) sample.operands.push_back({{i32, {b}}, 1, 4});
    for (std::int64_t i = 0; whole && i < Cell::states; ++i) sample.operands.push_back(operand({4, b, hidden}));
    for (std::size_t run = 0; run < cell.runs(); ++run) {
      sample.operands.push_back(operand({gates, run < 2 ? features : 2 * hidden}));
      sample.operands.push_back(operand({gates, hidden}));
      for (int i = 0; whole && i < 2; ++i) sample.operands.push_back(operand({gates}));
    }
    all.push_back(sample);
  }
  return all;
}

struct Rnn : Layers {
  static constexpr std::string_view name = "rnn";
  static constexpr std::string_view formula =
      "h = tanh(W x + b + U h + c) for each step, or max(..., 0) with `relu` (Elman 1990); results: h of every step, the last h of each "
      "layer and direction";
  bool relu = false;
  static auto fields() {
    return Fields<&Layers::layers, &Layers::bidirectional, &Layers::has_bias, &Layers::has_lengths, &Layers::has_state, &Rnn::relu>{};
  }
  static constexpr std::int64_t gates = 1, states = 1;
  static constexpr bool bias_with_state = false;
  Values step(Value from_x, Value from_h, const Values&) const {
    const Value sum = from_x + from_h;
    return {relu ? rlx::relu(sum) : tanh(sum)};
  }
  static Values body(const Rnn& op, In x) { return Sequences<Rnn>(op, x).results(); }
  static std::vector<Sample> samples() {
    std::vector<Sample> all = samples_of(Rnn{}), more = samples_of(Rnn{{}, true}, 0.05, 0.5);  // all positive: no kink
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
};
const Op<Rnn> rnn_op;

struct Gru : Layers {
  static constexpr std::string_view name = "gru";
  static constexpr std::string_view formula =
      "gates r, z, n: r = sigmoid(W x + b + U h + c), z likewise, n = tanh(W x + b + r (U h + c)), h = (1 - z) n + z h for each step (Cho "
      "et al. 2014, as in torch); results: h of every step, the last h of each layer and direction";
  static constexpr std::int64_t gates = 3, states = 1;
  static constexpr bool bias_with_state = true;
  static Values step(Value from_x, Value from_h, const Values& state) {
    const Values x = split_evenly(from_x, 3, -1), h = split_evenly(from_h, 3, -1);
    const Value reset = sigmoid(x[0] + h[0]), keep = sigmoid(x[1] + h[1]), fresh = tanh(x[2] + reset * h[2]);
    return {fresh + keep * (state[0] - fresh)};
  }
  static Values body(const Gru& op, In x) { return Sequences<Gru>(op, x).results(); }
  static std::vector<Sample> samples() { return samples_of(Gru{}); }
};
const Op<Gru> gru_op;

struct Lstm : Layers {
  static constexpr std::string_view name = "lstm";
  static constexpr std::string_view formula =
      "gates i, f, g, o = W x + b + U h + c: c = sigmoid(f) c + sigmoid(i) tanh(g), h = sigmoid(o) tanh(c) for each step (Hochreiter & "
      "Schmidhuber 1997); results: h of every step, the last h and the last c of each layer and direction";
  static constexpr std::int64_t gates = 4, states = 2;
  static constexpr bool bias_with_state = false;
  static Values step(Value from_x, Value from_h, const Values& state) {
    const Values gates = split_evenly(from_x + from_h, 4, -1);
    const Value cell = sigmoid(gates[1]) * state[1] + sigmoid(gates[0]) * tanh(gates[2]);
    return {sigmoid(gates[3]) * tanh(cell), cell};
  }
  static Values body(const Lstm& op, In x) { return Sequences<Lstm>(op, x).results(); }
  static std::vector<Sample> samples() { return samples_of(Lstm{}); }
};
const Op<Lstm> lstm_op;

/// A node of these layers. Whether there are biases, and how many layers, is seen by the weights.
template <class Cell>
Values layered(const Op<Cell>& op, Cell cell, Value x, const Values& weights, bool bidirectional, Value lengths, const Values& first) {
  cell.has_bias = weights.size() > 2 && weights[2].rank() == 1;
  cell.bidirectional = bidirectional;
  const std::size_t of_layer = cell.weights_of_run() * (bidirectional ? 2 : 1);
  if (weights.empty() || weights.size() % of_layer != 0)
    fail("rlx.{}: {} weights (allowed: {} for each layer)", Cell::name, weights.size(), of_layer);
  cell.layers = static_cast<std::int64_t>(weights.size() / of_layer);
  cell.has_lengths = static_cast<bool>(lengths);
  cell.has_state = static_cast<bool>(first[0]);
  for (Value state : first)
    if (static_cast<bool>(state) != cell.has_state) fail("rlx.{}: a first state is missing (allowed: all of them, or none)", Cell::name);
  Values operands{x};
  if (lengths) operands.push_back(lengths);
  if (cell.has_state) operands.insert(operands.end(), first.begin(), first.end());
  operands.insert(operands.end(), weights.begin(), weights.end());
  return op.all(cell, operands);
}

}  // namespace

/// Long short-term memory over x [b, s, features]. `weights` has for each layer, and with `bidirectional` for each direction of it, W [4
/// hidden, features], U [4 hidden, hidden] and, or in no layer, their biases [4 hidden], in the order of torch's parameters; the gates lie
/// as input, forget, cell, output. A layer above the first reads the outputs of all directions. lengths [b], integers, or null: steps
/// behind a text's length give 0 and leave the states, and the backward direction begins at its last step, as with torch's packed
/// sequences; lengths beyond s count as s, those below 1 as 0. First states h0, c0 [layers * directions, b, hidden] or null: zeros.
/// Results: y [b, s, directions * hidden] in x's dtype, the last h and c like h0 in at least f32.
Values lstm(Operand x, Operands weights, bool bidirectional /*= false*/, Operand lengths /*= {}*/, Operand h0 /*= {}*/,
            Operand c0 /*= {}*/) {
  return layered(lstm_op, {}, x, weights, bidirectional, lengths, {h0, c0});
}

/// Gated recurrent units over x [b, s, features]; W [3 hidden, features], U [3 hidden, hidden] with the gates reset, update, new, and all
/// else as in lstm. Results: y [b, s, directions * hidden], the last h.
Values gru(Operand x, Operands weights, bool bidirectional /*= false*/, Operand lengths /*= {}*/, Operand h0 /*= {}*/) {
  return layered(gru_op, {}, x, weights, bidirectional, lengths, {h0});
}

/// A plain recurrent network over x [b, s, features], by tanh or, with `relu`, by max(., 0); W [hidden, features], U [hidden, hidden], and
/// all else as in lstm. Results: y [b, s, directions * hidden], the last h.
Values rnn(Operand x, Operands weights, bool relu /*= false*/, bool bidirectional /*= false*/, Operand lengths /*= {}*/,
           Operand h0 /*= {}*/) {
  return layered(rnn_op, {{}, relu}, x, weights, bidirectional, lengths, {h0});
}

}  // namespace rlx
