#pragma once
#include <cstdint>

namespace rlx::cpu {

/// How a product is cut: C of each batch item into row_blocks x col_blocks tasks, and the depth into passes of `depth` steps.
/// It decides about time only: the bits of C do not depend on it.
struct Blocking {
  std::int64_t row_blocks = 1, col_blocks = 1;
  std::int64_t depth = 0;
  std::int64_t grain = 1;  // tasks that are worth a thread

  friend bool operator==(const Blocking&, const Blocking&) = default;
};

/// What there is to choose about a product.
struct ProductChoice {
  bool transposed = false;  // computed as the product of B and A transposed, see transposed.h; the cut is of that one
  Blocking cut;

  friend bool operator==(const ProductChoice&, const ProductChoice&) = default;
};

struct ProductSize {
  std::int64_t batch, m, k;
  std::int64_t panels;  // of B
  std::int64_t panel_cols;
  std::int64_t max_rows;                            // of the kernel's tile
  std::int64_t row_step, depth_step, longest_pass;  // see MicroKernel
  std::int64_t element_bytes;                       // of a unit of A
  bool by_columns = false;                          // blocks are handed over transposed
};

/// Expects all sizes but k to be 1 or more, and k to be whole steps of depth. `l2_bytes` is what one thread may fill.
Blocking choose_blocking(const ProductSize& size, std::int64_t l2_bytes, int threads);

/// Tasks of so many multiply-adds each that are worth a thread.
std::int64_t grain_of(double multiply_adds);

struct Range {
  std::int64_t begin, end;
  std::int64_t size() const { return end - begin; }
};

/// The contiguous parts of 0..total, whose lengths differ by at most one.
class EvenParts {
 public:
  EvenParts() = default;
  constexpr EvenParts(std::int64_t total, std::int64_t parts) : length_(total / parts), longer_(total % parts) {}

  constexpr Range operator[](std::int64_t index) const {
    const std::int64_t begin = index * length_ + (index < longer_ ? index : longer_);
    return {begin, begin + length_ + (index < longer_)};
  }

 private:
  std::int64_t length_ = 0, longer_ = 0;  // so many parts are one longer
};

constexpr std::int64_t divide_up(std::int64_t a, std::int64_t b) { return a / b + (a % b != 0); }

/// The same for a step that is mostly 1: a division takes as long as a small tile.
constexpr std::int64_t count_steps(std::int64_t total, std::int64_t step) { return step == 1 ? total : divide_up(total, step); }

/// One of the even parts; in whole steps, but for what the last has less.
constexpr Range even_part(std::int64_t total, std::int64_t parts, std::int64_t index, std::int64_t step = 1) {
  const Range part = EvenParts(count_steps(total, step), parts)[index];
  return {part.begin * step, part.end * step < total ? part.end * step : total};
}

}  // namespace rlx::cpu
