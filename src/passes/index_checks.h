#pragma once
#include <string>
#include <vector>

#include "rlx/graph.h"

namespace rlx {

/// Places along an axis that an op reads, where they are computed from integer inputs of a run alone.
struct IndexCheck {
  std::string op, inputs;
  Dim size;  // of the axis: the places are 0..size-1
};

struct IndexChecks {
  Graph graph;                     // of the integer inputs: for each check the least place and the largest, as outputs i64
  std::vector<IndexCheck> checks;  // in the order of the outputs
};

/// What `graph` reads places by and clamps: the starts of its gathers and dynamic slices. Those that read something else outside, those of
/// regions and those that a run computes from other than integer inputs are left out.
IndexChecks index_checks(const Graph& graph);

}  // namespace rlx
