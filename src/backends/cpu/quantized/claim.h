#pragma once
#include <optional>
#include <string>

#include "backends/cpu/quantized/block_kernel.h"
#include "lowering/claim.h"

namespace rlx::cpu {

struct Step;

/// The ops `block_dot` and `grouped_block_dot` as kernels take them: all values are stored, row after row.
struct BlockDot {
  ValueId node;  // the op and the value that it stores
  ValueId x, blocks;
  std::optional<ValueId> experts;  // by row, the matrix that it is multiplied with
  std::string type;                // of the blocks
  Dim rows, columns;               // of the result
  Dim depth;
  Dim matrices = 1;

  /// The kernel that multiplies blocks of this type as they are; null: they are widened.
  const BlockKernel* kernel(CpuLevel level) const { return block_kernel(type, level); }

  double flops(const Graph& graph, const Bindings& bindings) const;
  /// Weights that no row asks for, as of most experts. At most one matrix for each row is read.
  double unread_bytes(const Graph& graph, const Bindings& bindings) const;
  std::string panel_layout(const Step& step, CpuLevel level) const;
};

/// Takes products of f32 of sizes that are known when the graph is compiled, but for the number of rows: with blocks as the kernels take
/// them, x rounded to 8 bits, and with plain types that kernels widen.
const Claim& block_dot_claim();

}  // namespace rlx::cpu
