#pragma once
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "rlx/graph.h"

namespace rlx {

/// A graph whose nodes read blocks by kernels.
struct BlockGraph {
  Graph graph;
  std::set<ValueId> interleaved;               // weights whose rows lie side by side, byte by byte, as many as a vector has elements
  std::map<const void*, ValueId> tables = {};  // constants, by BlockTable::place
};

/// Whether kernels here compute the op, from blocks of its type: products and decoding.
bool reads_blocks(const Node& node);

/// An operand of a product as codes of 8 bits (..., groups, 32), and what each group of them is multiplied by; what was rounded to them,
/// behind views.
struct CodedOperand {
  ValueId codes, scales, rounded;
};
std::optional<CodedOperand> coded_operand(const Graph& graph, ValueId x);

/// The graph with its weights in blocks interleaved where they are the same in every run: vectors of `width` neighbouring results of a
/// product then read neighbours; and what its products round to 8 bits as codes. Guarantees: the same inputs, outputs and numbers.
BlockGraph with_interleaved_blocks(const Graph& graph, int width);

}  // namespace rlx
