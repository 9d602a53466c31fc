#pragma once
#include <cstdint>

#include "backends/cpu/gemm/aligned_buffer.h"
#include "backends/cpu/quantised/block_kernel.h"
#include "base/thread_pool.h"

namespace rlx::cpu {

/// Weights (n, k) in blocks, packed in panels for a kernel.
class BlockPanels {
 public:
  /// `blocks` (n, bytes_per_row) as in a GGUF file; k is a multiple of kernel.block_values. Throws Error for sizes beyond 64 bits.
  BlockPanels(const BlockKernel& kernel, const std::byte* blocks, std::int64_t bytes_per_row, std::int64_t n, std::int64_t k,
              ThreadPool& pool);

  const BlockKernel& kernel() const { return *kernel_; }
  std::int64_t n() const { return n_; }
  std::int64_t k() const { return k_; }
  std::int64_t blocks() const { return k_ / kernel_->block_values; }
  std::int64_t panels() const { return (n_ + BlockKernel::columns - 1) / BlockKernel::columns; }
  const std::byte* panel(std::int64_t i) const { return buffer_.data() + i * kernel_->panel_bytes(blocks()); }

 private:
  const BlockKernel* kernel_;
  std::int64_t n_, k_;
  AlignedBuffer buffer_;
};

/// C (m, n) = x (m, k) * weights (n, k)^T with x rounded to 8 bits, both row after row.
struct BlockDotArgs {
  std::int64_t m = 0;
  const float* x = nullptr;
  const BlockPanels* weights = nullptr;
  float* c = nullptr;
  std::byte* workspace = nullptr;  // block_dot_workspace bytes
};

std::size_t block_dot_workspace(const BlockKernel& kernel, std::int64_t m, std::int64_t k);

/// The bits of an element depend on its row of x and its row of weights alone.
void block_dot(const BlockDotArgs& args, ThreadPool& pool);

}  // namespace rlx::cpu
