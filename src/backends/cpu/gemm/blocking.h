#pragma once
#include <cstdint>

namespace rlx::cpu {

/// How a product is cut: C of each batch item into row_blocks x col_blocks tasks, and the depth into passes of `depth` steps.
/// It decides about time only: the bits of C do not depend on it.
struct Blocking {
  std::int64_t row_blocks = 1, col_blocks = 1;
  std::int64_t depth = 0;
  std::int64_t grain = 1;  // tasks that are worth a thread
};

struct ProductSize {
  std::int64_t batch, m, k;
  std::int64_t panels;  // of B
  std::int64_t panel_cols;
  std::int64_t max_rows;                            // of the kernel's tile
  std::int64_t row_step, depth_step, longest_pass;  // see MicroKernel
  std::int64_t element_bytes;
  bool by_columns = false;  // blocks are handed over transposed
};

/// Expects all sizes but k to be 1 or more. `l2_bytes` is what one thread may fill.
Blocking choose_blocking(const ProductSize& size, std::int64_t l2_bytes, int threads);

struct Range {
  std::int64_t begin, end;
  std::int64_t size() const { return end - begin; }
};

/// Part `index` of `parts` contiguous parts of 0..total, whose lengths differ by at most one.
constexpr Range even_part(std::int64_t total, std::int64_t parts, std::int64_t index) {
  const std::int64_t length = total / parts, longer = total % parts;
  const std::int64_t begin = index * length + (index < longer ? index : longer);
  return {begin, begin + length + (index < longer)};
}

constexpr std::int64_t divide_up(std::int64_t a, std::int64_t b) { return a / b + (a % b != 0); }

/// The same in whole steps, but for what the last part has less.
constexpr Range even_part(std::int64_t total, std::int64_t parts, std::int64_t index, std::int64_t step) {
  const Range part = even_part(divide_up(total, step), parts, index);
  return {part.begin * step, part.end * step < total ? part.end * step : total};
}

}  // namespace rlx::cpu
