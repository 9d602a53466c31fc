#pragma once
#include "lowering/kernels_only/interleaved_blocks.h"
#include "lowering/program.h"
#include "lowering/target.h"

namespace rlx {

/// Whether kernels that read the blocks compute the node: block_dot and grouped_block_dot of x as it is, where a block has several values,
/// and decode_blocks of all types.
bool has_block_kernels(const Graph& graph, const Node& node, const Caps& caps);

/// A kernel, and for which numbers of rows it computes the node; none: for all.
struct BlockKernel {
  Kernel kernel;
  std::optional<SizeRange> rows;
};

/// The kernels of a node for which this holds. They read blocks from where `is_stored` has them, and x, which is stored.
std::vector<BlockKernel> block_kernels(const BlockGraph& graph, std::int32_t node, const std::function<bool(ValueId)>& is_stored,
                                       const Caps& caps);

}  // namespace rlx
