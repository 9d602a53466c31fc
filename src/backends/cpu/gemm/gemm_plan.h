#pragma once
#include <cstddef>
#include <cstdint>

#include "backends/cpu/gemm/blocking.h"
#include "backends/cpu/gemm/gemm.h"
#include "backends/cpu/gemm/micro_kernels/micro_kernel.h"

namespace rlx::cpu {

/// Where the panels of B come from.
enum class BSource {
  packed,      // the caller's PackedB
  shared,      // packed by all workers before the product
  per_worker,  // packed by each worker when it comes to a batch item: stays in its cache, and no step that all wait for
};

/// All that gemm decides before it works: the kernel, the cut and the places in the workspace, which holds the shared panels of B and
/// then for each worker its own panels of B, its block of A, packed and as it was computed, its block of C and a tile for the edge of C, or
/// for one transposed panel of it.
template <class T>
struct Plan {
  const MicroKernel<T>* kernel = nullptr;
  Blocking cut;
  std::int64_t units = 0;   // of depth; the cut counts them too
  std::int64_t panels = 0;  // of B, per item
  BSource b_source = BSource::packed;
  std::int64_t b_items = 0;  // how many items of B are different, 1 or batch
  std::size_t shared_bytes = 0, worker_bytes = 0;
  std::size_t b_bytes = 0, a_bytes = 0, computed_bytes = 0, block_bytes = 0, edge_bytes = 0;  // parts of worker_bytes

  std::int64_t panel_units = 0;  // of B
  bool fetches_c = false;        // C is beyond the second-level caches: each tile's place is fetched while the tile is summed up
  std::int64_t in_place_stride =
      0;  // from row to row of A, within a run where there are tables, if A is read where it lies or was computed; 0: it is packed
  std::int64_t computed_stride = 0;  // of the block that compute_a writes
};

/// Whether a tile of rows so far apart stays in the first-level cache while it is read: rows at the distance of a large power of two share
/// its sets, of which there are 64 of 8 lines or more on the CPUs that have vectors.
bool rows_fit_sets(std::int64_t stride_bytes, std::int64_t rows);

/// The rows of the next tile of windows, of which there are `rows` in all: all at one stride, and as many as the next tiles of the same
/// run.
std::int64_t next_tile(const std::int64_t* offsets, std::int64_t rows, std::int64_t stride, std::int64_t most);

/// What choose_blocking is asked about.
template <class T>
ProductSize product_size(const GemmArgs<T>& args);

/// Expects sizes of 1 or more, but for k, which may be 0. Throws Error for sizes beyond 64 bits.
template <class T>
Plan<T> make_plan(const GemmArgs<T>& args, int threads);

}  // namespace rlx::cpu
