#pragma once
#include <string>

#include "rlx/graph.h"

namespace rlx::cpu {

/// The op `block_dot` as its kernel takes it: x and blocks are stored values, row after row.
struct BlockDot {
  ValueId node;  // the op and the value that it stores
  ValueId x, blocks;
  std::string type;   // of the blocks
  Dim rows, columns;  // of the result
  Dim depth;
};

/// The products that a kernel computes: f32 rounded to 8 bits, with weights of a type that the level has a kernel for, of sizes that are
/// known when the graph is compiled.
bool takes_block_dot(const Graph& graph, const Node& node);

BlockDot as_block_dot(const Graph& graph, ValueId node);

}  // namespace rlx::cpu
