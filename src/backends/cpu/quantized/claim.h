#pragma once
#include <optional>
#include <string>

#include "backends/cpu/quantized/block_dot.h"
#include "lowering/claim.h"

namespace rlx::cpu {

/// Weights in blocks as the kernels of their type read them, packed, and how they lie before: a launch that runs once.
struct PackedBlocks {
  std::string type;  // of the blocks
  std::int64_t row_bytes = 0, matrices = 1, n = 0, k = 0;

  BlockWeights weights(const std::byte* blocks) const { return {blocks, row_bytes, matrices, n, k}; }
  std::int64_t bytes(CpuLevel level) const;
};

/// The ops `block_dot` and `grouped_block_dot` as kernels take them: all values are stored, row after row.
struct BlockDot {
  ValueId node;  // the op and the value that it stores
  ValueId x, blocks;
  std::optional<ValueId> experts;  // by row, the matrix that it is multiplied with
  std::string type;                // of the blocks
  Dim rows, columns;               // of the result
  Dim depth;
  Dim matrices = 1;
  std::optional<ValueId> packed;  // `blocks` as kernels read them
  std::int64_t weight_bytes = 0;  // of all that they read

  /// The kernel that multiplies blocks of this type as they are; null: they are widened.
  const BlockKernel* kernel(CpuLevel level) const { return block_kernel(type, level); }

  PackedBlocks packing(const Graph& graph) const;
  double flops(const Graph& graph, const Bindings& bindings) const;
  /// Weights that no row asks for, as of most experts. At most one matrix for each row is read.
  double unread_bytes(const Graph& graph, const Bindings& bindings) const;
};

/// Takes products of f32 of sizes that are known when the graph is compiled, but for the number of rows: with blocks as the kernels take
/// them, x rounded to 8 bits, and with plain types that kernels widen.
const Claim& block_dot_claim();

}  // namespace rlx::cpu
