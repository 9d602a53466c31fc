#pragma once
#include <cstdint>
#include <vector>

#include "backends/cpu/quantized/block_kernel.h"
#include "backends/cpu/quantized/row_groups.h"
#include "base/memory/page_pieces.h"
#include "base/thread_pool.h"

namespace rlx::cpu {

/// Weights (matrices, n, k) in blocks, as in a GGUF file.
struct BlockWeights {
  const std::byte* blocks = nullptr;
  std::int64_t row_bytes = 0;
  std::int64_t matrices = 1, n = 0, k = 0;

  const std::byte* row(std::int64_t matrix, std::int64_t i) const { return blocks + (matrix * n + i) * row_bytes; }
};

/// Such weights packed in panels for a kernel.
class BlockPanels {
 public:
  /// Panels of such weights that lie at `memory`, or in memory of their own, still to be filled. weights.k is a multiple of
  /// kernel.block_values. Throws Error for sizes beyond 64 bits.
  BlockPanels(const BlockKernel& kernel, const BlockWeights& weights, std::byte* memory = nullptr);
  /// The bytes of memory that they take. Throws as they do.
  static std::int64_t bytes_of(const BlockKernel& kernel, const BlockWeights& weights);
  /// Fills them with all threads of the pool.
  void pack(const BlockWeights& weights, ThreadPool& pool);

  const BlockKernel& kernel() const { return *kernel_; }
  std::int64_t n() const { return n_; }
  std::int64_t k() const { return k_; }
  std::int64_t blocks() const { return k_ / kernel_->block_values; }
  /// Of one matrix.
  std::int64_t panels() const { return (n_ + BlockKernel::columns - 1) / BlockKernel::columns; }
  std::span<const std::byte> matrix(std::int64_t i) const { return {panel(i, 0), static_cast<std::size_t>(panels() * panel_bytes())}; }
  std::int64_t panel_bytes() const { return kernel_->panel_bytes(blocks()); }
  const std::byte* panel(std::int64_t matrix, std::int64_t i) const { return memory_ + (matrix * panels() + i) * panel_bytes(); }

 private:
  void pack_some(const BlockWeights& weights, std::int64_t begin, std::int64_t end);

  const BlockKernel* kernel_;
  std::int64_t n_, k_;
  PagePiece own_;
  std::byte* memory_;
};

/// C (m, n) = x (m, k) * weights (n, k)^T with x rounded to 8 bits, both row after row; each row with the matrix of its group.
struct BlockProduct {
  const BlockPanels* weights = nullptr;
  float* c = nullptr;
};

/// Products of the same rows, which run as one loop: k is that of all, and so is the number of matrices.
struct BlockDotArgs {
  RowGroups rows;
  const float* x = nullptr;
  std::vector<BlockProduct> products;  // at least one
  std::byte* workspace = nullptr;      // block_dot_workspace bytes
};

std::size_t block_dot_workspace(const BlockDotArgs& args, int threads);

/// The bits of an element depend on its row of x and its row of weights alone. Reads the matrices that have rows.
void block_dot(const BlockDotArgs& args, ThreadPool& pool);

}  // namespace rlx::cpu
