#include "models/layers/pooling.h"

#include "rlx/ops.h"

namespace rlx {
namespace {

/// The sum of the states times `weights` (B, S, 1), and of the weights alone: (B, H) and (B, 1).
std::pair<Value, Value> weighted_sum(Value states, Value weights) { return {sum(states * weights, {1}), sum(weights, {1})}; }

/// A sum of weights, kept away from 0 as in sentence-transformers.
Value at_least_tiny(Value total) { return max(total, scalar(total, 1e-9, total.dtype())); }

/// The state at a position (B) of each text: (B, H).
Value state_at(Value states, Value position) {
  Value at = reshape(position, {states.dim(0), 1, 1});
  return reshape(take_along_axis(states, at, 1), {states.dim(0), states.dim(2)});
}

Value first_state(Value states) { return reshape(slice_axis(states, 1, 0, 1), {states.dim(0), states.dim(2)}); }

Value largest(Value states, Value keep) {
  Value lowest = scalar(states, -1e9, states.dtype());
  return reduce_max(select(reshape(keep, {keep.dim(0), keep.dim(1), 1}), states, lowest), {1});
}

Value pool_one(Value states, Value keep, Pooling mode) {
  const Dims column{states.dim(0), states.dim(1), 1};
  Value weights = reshape(cast(keep, states.dtype()), column);
  switch (mode) {
    case Pooling::cls: return first_state(states);
    case Pooling::max: return largest(states, keep);
    case Pooling::mean: {
      auto [total, count] = weighted_sum(states, weights);
      return total / at_least_tiny(count);
    }
    case Pooling::mean_sqrt_len: {
      auto [total, count] = weighted_sum(states, weights);
      return total / sqrt(at_least_tiny(count));
    }
    case Pooling::weighted_mean: {  // later tokens weigh more: 1, 2, 3, ...
      Value position = iota(states, column, states.dtype(), 1) + 1;
      auto [total, weight] = weighted_sum(states, weights * position);
      return total / at_least_tiny(weight);
    }
    case Pooling::last_token: {
      Value count = sum(cast(keep, i32), {1});
      return state_at(states, count - scalar(count, 1, i32));
    }
  }
  fail_internal("pooling: mode {} is not in the enumeration", static_cast<int>(mode));
}

}  // namespace

Value pool(Value states, Value keep, const std::vector<Pooling>& modes) {
  Value kept = ne(keep, scalar(keep, 0, keep.dtype()));
  Values parts;
  for (Pooling mode : modes) parts.push_back(pool_one(states, kept, mode));
  return parts.size() == 1 ? parts[0] : concat(parts, 1);
}

Value normalize_rows(Value x) {
  Value norm = sqrt(sum(x * x, {-1}, true));
  return x / max(norm, scalar(norm, 1e-12, norm.dtype()));
}

}  // namespace rlx
