#pragma once
#include <cstdint>
#include <vector>

#include "rlx/ops.h"

namespace rlx {

/// The attributes of a dot.
struct DotAxes {
  using Ints = std::vector<std::int64_t>;
  Ints lhs_contract, rhs_contract, lhs_batch, rhs_batch;

  explicit DotAxes(const Node& dot)
      : lhs_contract(std::get<Ints>(dot.attrs[0])),
        rhs_contract(std::get<Ints>(dot.attrs[1])),
        lhs_batch(std::get<Ints>(dot.attrs[2])),
        rhs_batch(std::get<Ints>(dot.attrs[3])) {}

  Value dot(Value x, Value z) const { return rlx::dot(x, z, lhs_contract, rhs_contract, lhs_batch, rhs_batch); }
};

}  // namespace rlx
