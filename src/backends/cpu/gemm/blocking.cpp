#include "backends/cpu/gemm/blocking.h"

#include <algorithm>

namespace rlx::cpu {
namespace {

// Measured on Zen 4 and not sensitive: half or double of each costs a few percent at most.
constexpr std::int64_t most_rows = 128;             // a block of A this tall makes B's way from L3 cheap
constexpr std::int64_t most_cols = 512;             // keeps the finished block in L2 for the epilogue
constexpr std::int64_t most_cols_in_passes = 1024;  // each pass packs A again for each block of columns
// Measured on a Xeon with AMX: its tiles multiply so fast that packing A again for 512 columns takes a third of their time.
constexpr std::int64_t most_rows_of_matrix_tiles = 256, most_cols_of_matrix_tiles = 2048;
// Rows that lie side by side in the result: the longer, the fewer streams does an epilogue read and write at a time.
constexpr std::int64_t most_rows_by_columns = 512, most_cols_by_columns = 128;
constexpr double enough_balance = 0.95;

// To share a loop costs about a microsecond. What one core does in that time:
constexpr double multiply_adds_per_share = 50e3;
constexpr double sums_per_share = 10e3;     // stored, which is what short depths are bound by
constexpr double b_bytes_per_share = 25e3;  // of B read from memory, which is what few rows are bound by

/// Of a block.
struct Most {
  std::int64_t rows, cols;
};
Most most_of(const ProductSize& size, bool in_passes) {
  if (size.by_columns) return {most_rows_by_columns, most_cols_by_columns};
  if (size.depth_step > 1) return {most_rows_of_matrix_tiles, most_cols_of_matrix_tiles};
  return {most_rows, in_passes ? most_cols_in_passes : most_cols};
}

/// The share of the threads' time that is spent on useful tasks.
double balance(const ProductSize& size, const Blocking& cut, int threads) {
  const std::int64_t row_steps = count_steps(size.m, size.row_step);
  const double tasks_each = static_cast<double>(divide_up(size.batch * cut.row_blocks * cut.col_blocks, threads));
  const double largest =
      static_cast<double>(divide_up(row_steps, cut.row_blocks)) * static_cast<double>(divide_up(size.panels, cut.col_blocks));
  const double all = static_cast<double>(size.batch) * static_cast<double>(row_steps) * static_cast<double>(size.panels);
  return all / (tasks_each * largest * threads);
}

/// Cuts one axis finer, up to `most` blocks, until the threads are busy; the first of equals is kept, as fewer blocks pack less.
void refine(const ProductSize& size, Blocking& cut, std::int64_t Blocking::* axis, std::int64_t most, int threads) {
  double best = balance(size, cut, threads);
  Blocking trial = cut;
  for (most = std::min(most, cut.*axis + threads); best < enough_balance && trial.*axis < most;) {
    ++(trial.*axis);
    const double now = balance(size, trial, threads);
    if (now > best) best = now, cut = trial;
  }
}

std::int64_t grain_of_shares(double shares) {
  return shares >= 1 ? 1 : static_cast<std::int64_t>(std::min(1 / std::max(shares, 1e-6), 1e6)) + 1;
}

/// Both axes cut finer, columns first; rows first, where so more of the threads are busy (three panels for two threads).
Blocking refined(const ProductSize& size, const Blocking& cut, int threads) {
  const std::int64_t most_row_blocks = divide_up(size.m, std::max(size.row_step, std::min<std::int64_t>(size.max_rows, 4)));
  Blocking columns_first = cut, rows_first = cut;
  refine(size, columns_first, &Blocking::col_blocks, size.panels, threads);
  refine(size, columns_first, &Blocking::row_blocks, most_row_blocks, threads);
  if (balance(size, columns_first, threads) >= enough_balance) return columns_first;
  refine(size, rows_first, &Blocking::row_blocks, most_row_blocks, threads);
  refine(size, rows_first, &Blocking::col_blocks, size.panels, threads);
  return balance(size, rows_first, threads) > balance(size, columns_first, threads) ? rows_first : columns_first;
}

}  // namespace

Blocking choose_blocking(const ProductSize& size, std::int64_t l2_bytes, int threads) {
  Blocking cut;
  cut.depth = std::max<std::int64_t>(1, size.k);
  if (size.k > size.longest_pass) {
    const std::int64_t passes = divide_up(size.k, size.longest_pass);
    cut.depth = divide_up(count_steps(size.k, size.depth_step), passes) * size.depth_step;
  }
  // Panels of B come through the same cache: with half of it for A, 1536 x 1536 x 1536 took 3% longer.
  const std::int64_t rows_in_cache = l2_bytes * 3 / 8 / (cut.depth * size.element_bytes);
  const Most most = most_of(size, size.k > cut.depth);
  cut.row_blocks = divide_up(size.m, std::clamp(rows_in_cache, 2 * size.max_rows, most.rows));
  cut.col_blocks = divide_up(size.panels, std::max<std::int64_t>(1, most.cols / size.panel_cols));
  cut = refined(size, cut, threads);

  const double task_cols = static_cast<double>(divide_up(size.panels, cut.col_blocks) * size.panel_cols);
  const double task_b = task_cols * static_cast<double>(size.k);
  const double task_rows = static_cast<double>(divide_up(size.m, cut.row_blocks));
  const double shares = std::max({task_b * task_rows / multiply_adds_per_share, task_cols * task_rows / sums_per_share,
                                  task_b * static_cast<double>(size.element_bytes) / b_bytes_per_share});
  cut.grain = grain_of_shares(shares);
  return cut;
}

std::int64_t grain_of(double multiply_adds) { return grain_of_shares(multiply_adds / multiply_adds_per_share); }

}  // namespace rlx::cpu
