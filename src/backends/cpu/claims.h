#pragma once
#include <string_view>

#include "rlx/graph.h"

namespace rlx::cpu {

/// A composite that a kernel written by hand computes whole, where `takes` holds: its attributes, sizes and types are those of the kernel.
/// Lowering makes a launch of it in place of its body.
struct Claim {
  std::string_view op;
  bool (*takes)(const Graph& graph, const Node& node);
};

/// Whether a claim takes the composite. What none takes is computed from its body.
bool is_claimed(const Graph& graph, const Node& node);

}  // namespace rlx::cpu
