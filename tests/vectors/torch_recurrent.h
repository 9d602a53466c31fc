#pragma once
#include "vectors/torch_layers.h"

// Recurrent layers as scans: our graph for the cases of fixtures/torch/backward.json.
namespace rlx::test {

/// The next state from the parts that the input and the last state contribute; h is the first element of a state.
using TorchCell = std::function<Values(Value from_input, Value from_state, const Values& state)>;

inline Values plain_cell(Value a, Value b, const Values&) { return {tanh(a + b)}; }

inline Values gru_cell(Value a, Value b, const Values& state) {
  const Values x = split_evenly(a, 3, -1), h = split_evenly(b, 3, -1);
  const Value reset = sigmoid(x[0] + h[0]), keep = sigmoid(x[1] + h[1]);
  return {(1 - keep) * tanh(x[2] + reset * h[2]) + keep * state[0]};
}

inline Values lstm_cell(Value a, Value b, const Values& state) {
  const Values gates = split_evenly(a + b, 4, -1);  // input, forget, cell, output
  const Value cell = sigmoid(gates[1]) * state[1] + sigmoid(gates[0]) * tanh(gates[2]);
  return {sigmoid(gates[3]) * tanh(cell), cell};
}

/// All layers and directions over x (T, N, C): the last layer's h of every step, then the last states, layer by layer.
inline TorchRule recurrent(const TorchCell& cell) {
  return [cell](TorchOperands& x, const json::Value& p) {
    const int directions = p["bidirectional"].get<bool>() ? 2 : 1;
    const std::vector<const char*> parts = x.contains("c0") ? std::vector<const char*>{"h0", "c0"} : std::vector<const char*>{"h0"};
    Value sequence = x["x"];
    std::vector<Values> last(parts.size());
    for (int layer = 0; layer < p["layers"].get<int>(); ++layer) {
      Values outputs;
      for (int direction = 0; direction < directions; ++direction) {
        const auto weight = [&](const char* name) {
          return x.at(name + ("_l" + std::to_string(layer)) + (direction == 1 ? "_reverse" : ""));
        };
        const Value w = weight("weight_ih"), u = weight("weight_hh"), wb = weight("bias_ih"), ub = weight("bias_hh");
        Values state;
        for (const char* part : parts) {
          const std::int64_t place = layer * directions + direction;
          state.push_back(squeeze(slice_axis(x[part], 0, place, place + 1), {0}));
        }
        const auto step = [&](const Values& s, const Values& v) {
          const Values next = cell(linear(v[0], w, wb), linear(s[0], u, ub), s);
          return std::pair{next, Values{next[0]}};
        };
        const Values results = scan(step, state, {sequence}, {}, direction == 1);
        for (std::size_t i = 0; i < parts.size(); ++i) last[i].push_back(results[i]);
        outputs.push_back(results.back());
      }
      sequence = concat(outputs, -1);
    }
    Values all{sequence};
    for (const Values& states : last) all.push_back(stack(states, 0));
    return all;
  };
}

}  // namespace rlx::test
