#pragma once
#include <cstddef>
#include <cstdint>

#include "backends/cpu/gemm/blocking.h"
#include "backends/cpu/gemm/packed_b.h"
#include "base/thread_pool.h"

namespace rlx::cpu {

/// Fills `block` (rows, depth) with rows row0.. and steps k0.. of A of one batch item: a cast, a dequantization or a normalisation inside
/// the packing. `stride` elements from row to row; where GemmArgs say that A is computed by columns, `block` is (depth, rows), with
/// `stride` from step to step. It may run several times for the same piece of A, and on any worker.
template <class T>
using ComputeA = void (*)(void* context, Left<T>* block, std::int64_t stride, std::int64_t batch, std::int64_t row0, std::int64_t rows,
                          std::int64_t k0, std::int64_t depth);

/// Takes a finished block of C, `tile` (rows, cols) with `tile_stride` elements from row to row, while it is in cache; or (cols, rows),
/// with `tile_stride` from column to column, where GemmArgs say so. It may change the tile, and stores where it likes. Called exactly once
/// per block, on any worker; the blocks cover C without overlap.
template <class T>
using Epilogue = void (*)(void* context, Sum<T>* tile, std::int64_t tile_stride, std::int64_t batch, std::int64_t row0, std::int64_t rows,
                          std::int64_t col0, std::int64_t cols);

/// C (batch, m, n) = A (batch, m, k) * B (batch, k, n) for elements T: float, double, Bf16, F16, Bf16Weight or std::int8_t, all but the
/// first two where has_micro_kernel holds. Those of A are Left<T>: floats beside F16 and Bf16Weight. C is of the type of sums. With k = 0,
/// C is zeros.
template <class T>
struct GemmArgs {
  std::int64_t batch = 1, m = 0, n = 0, k = 0;

  Matrix<Left<T>> a{};              // unused where compute_a is set
  ComputeA<T> compute_a = nullptr;  // for A of float and double only
  void* compute_a_context = nullptr;
  bool a_by_columns = false;  // that is how compute_a writes it

  Matrix<T> b{};                         // unused where packed_b is set
  const PackedB<T>* packed_b = nullptr;  // k, n as here; its batch is 1 (one B for all items) or as here

  Sum<T>* c = nullptr;  // unused where epilogue is set; columns side by side
  std::int64_t c_row_stride = 0, c_batch_stride = 0;
  const std::int64_t* c_batch_offsets = nullptr;  // where each item starts, in place of c_batch_stride
  Epilogue<T> epilogue = nullptr;
  void* epilogue_context = nullptr;
  bool epilogue_by_columns = false;  // blocks are handed over transposed, for results whose rows lie side by side

  const ProductChoice* choice = nullptr;  // null: what choose_blocking and worth_transposing say; time depends on it, bits do not
  const MicroKernel<T>* kernel = &micro_kernel<T>(cpu_level());  // packed_b brings its own
  std::byte* workspace = nullptr;                                // gemm_workspace bytes on a 64-byte boundary; null: allocated for the call
};

/// The bytes of scratch memory that gemm needs for these sizes on a pool of `threads`. Reads no matrix, but its offsets.
/// Throws Error for sizes below 0 or beyond 64 bits.
template <class T>
std::size_t gemm_workspace(const GemmArgs<T>& args, int threads);

/// Every element of C is summed along k in one order, the same whatever the threads, the batch position and the sizes m and n: see
/// MicroKernel. Throws Error for sizes below 0 or beyond 64 bits, a packed B of other sizes, and a missing matrix.
template <class T>
void gemm(const GemmArgs<T>& args, ThreadPool& pool);

}  // namespace rlx::cpu
