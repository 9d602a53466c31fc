// Running sums, products and extremes along an axis. Lines are cut into blocks whose length sizes alone decide: a running value is that of
// its block, on top of the blocks before it, whichever thread computes it.
#include <algorithm>
#include <limits>

#include "backends/cpu/routines/elements.h"
#include "backends/cpu/routines/routine.h"
#include "ir/op.h"
#include "ops/axis_lines.h"
#include "ops/reduction/recurrence.h"

namespace rlx::cpu {
namespace {

template <ReduceKind kind, class T>
T combined(T a, T b) {
  if constexpr (kind == ReduceKind::sum) return static_cast<T>(a + b);
  else if constexpr (kind == ReduceKind::max) return maximum(a, b);
  else if constexpr (kind == ReduceKind::min) return minimum(a, b);
  else return product(a, b);
}

/// What changes no other value.
template <ReduceKind kind, class T>
T neutral() {
  using Limits = std::numeric_limits<T>;
  if constexpr (kind == ReduceKind::sum) return T(0);
  else if constexpr (kind == ReduceKind::prod) return T(1);
  else if constexpr (Limits::has_infinity) return kind == ReduceKind::max ? -Limits::infinity() : Limits::infinity();
  else return kind == ReduceKind::max ? Limits::lowest() : Limits::max();
}

template <ReduceKind kind, class S>
class Running {
 public:
  using T = Wide<S>;
  explicit Running(const RoutineCall& call)
      : call_(call),
        lines_(call.results[0].shape, std::get<std::int64_t>(call.attrs[1])),
        exclusive_(std::get<bool>(call.attrs[2])),
        reverse_(std::get<bool>(call.attrs[3])),
        step_(reverse_ ? -lines_.stride : lines_.stride),
        width_(std::min(most_width, lines_.stride)) {}

  void run() const {
    if (lines_.count * lines_.length == 0) return;
    const std::int64_t strips = (lines_.stride + width_ - 1) / width_, items = lines_.count / lines_.stride * strips;
    const std::int64_t grain = std::max<std::int64_t>(1, (1 << 14) / (lines_.length * width_));
    if (items < 2 * call_.pool.size() && blocks_ > 1) return run_blocks(strips, items);
    call_.pool.parallel_for(items, grain, [&](std::int64_t begin, std::int64_t end, int) {
      T before[most_width];
      for (std::int64_t i = begin; i < end; ++i) {
        std::fill_n(before, most_width, neutral<kind, T>());
        for (std::int64_t b = 0; b < blocks_; ++b) run_block<true>(strip(i, strips), b, before);
      }
    });
  }

 private:
  static constexpr std::int64_t most_width = 128;  // lines that lie side by side
  static constexpr std::int64_t block_length = 4096;

  /// Neighbouring lines.
  struct Strip {
    std::int64_t first, width;  // the place of their first elements
  };
  Strip strip(std::int64_t i, std::int64_t strips) const {
    const std::int64_t column = i % strips * width_, start = i / strips * lines_.length * lines_.stride + column;
    return {start + (reverse_ ? (lines_.length - 1) * lines_.stride : 0), std::min(width_, lines_.stride - column)};
  }

  /// All threads take blocks of the same lines: what each adds, and then its running values on top of those before it.
  void run_blocks(std::int64_t strips, std::int64_t items) const {
    const std::int64_t count = items * blocks_;
    auto* before = reinterpret_cast<T*>(call_.scratch(static_cast<std::size_t>(count * width_) * sizeof(T)));
    std::uninitialized_fill_n(before, count * width_, neutral<kind, T>());
    const auto for_blocks = [&](const auto& each) {
      call_.pool.parallel_for(count, 1, [&](std::int64_t begin, std::int64_t end, int) {
        for (std::int64_t i = begin; i < end; ++i) each(strip(i / blocks_, strips), i % blocks_, before + i * width_);
      });
    };
    for_blocks([this](const Strip& lines, std::int64_t b, T* total) { run_block<false>(lines, b, total); });
    for (std::int64_t i = 0; i < items; ++i)
      for (std::int64_t c = 0; c < width_; ++c) {
        T total = neutral<kind, T>();
        for (T* at = before + i * blocks_ * width_ + c; at < before + (i + 1) * blocks_ * width_; at += width_)
          total = combined<kind>(total, std::exchange(*at, total));
      }
    for_blocks([this](const Strip& lines, std::int64_t b, T* total) { run_block<true>(lines, b, total); });
  }

  /// Takes the values before a block to those behind it; with `stores` also stores the running ones.
  template <bool stores>
  void run_block(const Strip& lines, std::int64_t block, T* before) const {
    const std::int64_t n = std::min(block_length, lines_.length - block * block_length), at = lines.first + block * block_length * step_;
    if (lines.width > 1) return run_columns<stores>(at, n, lines.width, before);
    *before = combined<kind>(*before, run_line<stores>(at, n, *before));
  }

  /// Returns what the line adds. Groups of elements hide how long each addition takes.
  template <bool stores>
  T run_line(std::int64_t at, std::int64_t n, T before) const {
    constexpr std::int64_t group = 8;
    T total = neutral<kind, T>(), inside[group];
    for (std::int64_t k = 0; k < n; k += group, at += group * step_) {
      const std::int64_t some = std::min(group, n - k);
      const auto read = [&](std::int64_t count) {
        for (std::int64_t i = 0; i < count; ++i) inside[i] = i == 0 ? T(x_[at]) : combined<kind>(inside[i - 1], T(x_[at + i * step_]));
      };
      some == group ? read(group) : read(some);
      if constexpr (stores) {
        const T base = combined<kind>(before, total);
        for (std::int64_t i = 0; i < some; ++i)
          y_[at + i * step_] = S(!exclusive_ ? combined<kind>(base, inside[i]) : i == 0 ? base : combined<kind>(base, inside[i - 1]));
      }
      total = combined<kind>(total, inside[some - 1]);
    }
    return total;
  }

  template <bool stores>
  void run_columns(std::int64_t at, std::int64_t n, std::int64_t width, T* before) const {
    T total[most_width];
    std::fill_n(total, width, neutral<kind, T>());
    for (std::int64_t k = 0; k < n; ++k, at += step_)
      for (std::int64_t c = 0; c < width; ++c) {
        const T next = combined<kind>(total[c], T(x_[at + c]));
        if constexpr (stores) y_[at + c] = S(combined<kind>(before[c], exclusive_ ? total[c] : next));
        total[c] = next;
      }
    for (std::int64_t c = 0; c < width; ++c) before[c] = combined<kind>(before[c], total[c]);
  }

  const RoutineCall& call_;
  const AxisLines lines_;
  const bool exclusive_, reverse_;
  const std::int64_t step_, width_;
  const std::int64_t blocks_ = (lines_.length + block_length - 1) / block_length;
  const S* x_ = call_.operands[0].as<const S>();
  S* y_ = call_.results[0].as<S>();
};

void run(const RoutineCall& call) {
  const DType type = call.results[0].dtype;
  ReduceKind kind{};
  rlx::detail::from_attr(call.attrs[0], kind);
  switch (kind) {
    case ReduceKind::sum: return with_number(type, [&]<class S>(S*) { Running<ReduceKind::sum, S>(call).run(); });
    case ReduceKind::prod: return with_number(type, [&]<class S>(S*) { Running<ReduceKind::prod, S>(call).run(); });
    case ReduceKind::max: return with_ordered(type, [&]<class S>(S*) { Running<ReduceKind::max, S>(call).run(); });
    case ReduceKind::min: return with_ordered(type, [&]<class S>(S*) { Running<ReduceKind::min, S>(call).run(); });
  }
}

bool takes(const Graph&, const Node& node) { return !is_packed(node.results[0].dtype); }

const RegisterRoutine cumulative_routine({.op = "cumulative", .takes = takes, .run = run, .in_place_of = 0});

}  // namespace
}  // namespace rlx::cpu
