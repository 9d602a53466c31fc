#pragma once
#include "vectors/torch_layers.h"

// Recurrent layers: our graph for the cases of fixtures/torch/backward.json, whose x is (T, N, C), and of sequences.json, (N, T, C).
namespace rlx::test {

using TorchRecurrence = std::function<Values(Value x, const Values& weights, bool bidirectional, Value lengths, TorchOperands& others)>;

inline Values recorded_rnn(Value x, const Values& weights, bool bidirectional, Value lengths, TorchOperands& others) {
  return rnn(x, weights, false, bidirectional, lengths, others["h0"]);
}
inline Values recorded_relu_rnn(Value x, const Values& weights, bool bidirectional, Value lengths, TorchOperands& others) {
  return rnn(x, weights, true, bidirectional, lengths, others["h0"]);
}
inline Values recorded_gru(Value x, const Values& weights, bool bidirectional, Value lengths, TorchOperands& others) {
  return gru(x, weights, bidirectional, lengths, others["h0"]);
}
inline Values recorded_lstm(Value x, const Values& weights, bool bidirectional, Value lengths, TorchOperands& others) {
  return lstm(x, weights, bidirectional, lengths, others["h0"], others["c0"]);
}

/// The weights of all layers and directions in torch's order.
inline Values recorded_weights(TorchOperands& x, const json::Value& p) {
  Values weights;
  for (int layer = 0; layer < p["layers"].get<int>(); ++layer)
    for (const char* direction : {"", "_reverse"})
      for (const char* part : {"weight_ih", "weight_hh", "bias_ih", "bias_hh"})
        if (const auto found = x.find(fmt::format("{}_l{}{}", part, layer, direction)); found != x.end()) weights.push_back(found->second);
  return weights;
}

inline TorchRule steps_first(TorchRecurrence layers) {
  return [layers](TorchOperands& x, const json::Value& p) {
    const Values weights = recorded_weights(x, p);
    Values y = layers(move_axis(x["x"], 1, 0), weights, p["bidirectional"].get<bool>(), Value(), x);
    y[0] = move_axis(y[0], 1, 0);
    return y;
  };
}
inline TorchRule batch_first(TorchRecurrence layers) {
  return [layers](TorchOperands& x, const json::Value& p) {
    const Values weights = recorded_weights(x, p);
    return layers(x["x"], weights, p["bidirectional"].get<bool>(), x["lengths"], x);
  };
}

}  // namespace rlx::test
