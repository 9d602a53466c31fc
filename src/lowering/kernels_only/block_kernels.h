#pragma once
#include <array>

#include "lowering/kernels_only/interleaved_blocks.h"
#include "lowering/program.h"
#include "lowering/target.h"

namespace rlx {

/// Whether kernels that read the blocks compute the node: block_dot and grouped_block_dot of x as it is, where a block has several values,
/// and decode_blocks of all types.
bool has_block_kernels(const Graph& graph, const Node& node, const Caps& caps);

/// A kernel, and for which numbers of rows it computes the node; none: for all.
struct BlockKernelOfRows {
  Kernel kernel;
  std::optional<SizeRange> rows;
};

/// The kernels of a node for which this holds. They read blocks from where `is_stored` has them, and x, which is stored.
std::vector<BlockKernelOfRows> block_kernels(const BlockGraph& graph, std::int32_t node, const std::function<bool(ValueId)>& is_stored,
                                             const Caps& caps);

/// What `with_interleaved_blocks` left in a graph, also after it was copied.
BlockGraph block_graph(const Graph& graph);

inline constexpr std::int64_t run_of_block = 16;  // neighbours whose places in a block differ by their number alone

/// A tile kernel of three loops, over pairs of runs, both sides of a pair, and the numbers of a run: those of a block at buffer 0, which
/// it stores in buffer 1. Behind these are the tables that the type reads.
Kernel block_run(std::string_view type, const std::array<ValueId, 2>& buffers, const std::map<const void*, ValueId>& tables);

}  // namespace rlx
