// Scatter of every kind. Threads have parts of the result each, in which they take the updates in their order: the bits do not depend on
// their number.
#include <algorithm>
#include <cstring>
#include <optional>

#include "backends/cpu/routines/elements.h"
#include "backends/cpu/routines/scatter_places.h"
#include "ir/extremum.h"
#include "ir/op.h"

namespace rlx::cpu {
namespace {

template <ScatterKind kind, class T>
T combined(T a, T b) {
  if constexpr (kind == ScatterKind::set) return b;
  else if constexpr (kind == ScatterKind::min) return minimum(a, b);
  else if constexpr (kind == ScatterKind::max) return maximum(a, b);
  else if constexpr (kind == ScatterKind::add) return static_cast<T>(a + b);
  else return product(a, b);
}

/// Combines n neighbours into n neighbours.
template <ScatterKind kind, class S, class T>
void combine_row(T* to, const S* from, std::int64_t n) {
  std::int64_t i = 0;
  if constexpr (kind == ScatterKind::set) return void(std::copy_n(from, n, to));
  constexpr bool is_arithmetic = kind == ScatterKind::add || kind == ScatterKind::mul;
  if constexpr (is_arithmetic && !is_complex_number<T>) {
    using Vector = typename Side<T>::Vector;
    for (; i + Side<T>::lanes <= n; i += Side<T>::lanes) {
      auto& sums = *reinterpret_cast<Vector*>(to + i);
      Vector terms;
      if constexpr (std::is_same_v<S, T>) terms = *reinterpret_cast<const Vector*>(from + i);
      else terms = four_floats(from + i);
      if constexpr (kind == ScatterKind::add) sums += terms;
      else sums *= terms;
    }
  }
  for (; i < n; ++i) to[i] = combined<kind, T>(to[i], from[i]);
}

/// Elements of type S that are combined as numbers of type T: of narrow floats, which are rounded once.
template <ScatterKind kind, class S, class T>
class Scattering {
 public:
  explicit Scattering(const RoutineCall& call)
      : call_(call),
        places_(call),
        x_(call.operands[0].as<const S>()),
        updates_(call.operands[2].as<const S>()),
        y_(call.results[0].as<S>()),
        size_(call.results[0].size()),
        is_filled_(call.operands[0].shape != call.results[0].shape),
        rows_(find_rows()) {}

  void run() const {
    if (size_ == 0) return;
    if (rows_) scatter_by_blocks();
    else scatter_in_order();
  }

 private:
  static constexpr bool is_widened = !std::is_same_v<S, T>;
  static constexpr std::int64_t block_elements = 1 << 15;  // in the caches

  // -- parts of the result

  /// What is combined with: the old elements of lo..hi of the result.
  T* open(std::int64_t lo, std::int64_t hi, T* wide) const {
    T* sums = wide;
    if constexpr (!is_widened) sums = y_ + lo;
    if (is_filled_) std::fill(sums, sums + (hi - lo), static_cast<T>(*x_));
    else if constexpr (is_widened) to_floats(x_ + lo, sums, hi - lo);
    else if (x_ != y_) std::copy(x_ + lo, x_ + hi, sums);
    return sums;
  }
  void close(std::int64_t lo, std::int64_t hi, const T* sums) const {
    if constexpr (is_widened) from_floats(sums, y_ + lo, hi - lo);
  }

  // -- any windows: each thread takes the updates one after the other, as far as they fall into its part

  void scatter_in_order() const {
    const std::int64_t threads = std::min<std::int64_t>(call_.pool.size(), 1 + size_ / 4096);
    constexpr std::int64_t walks = is_widened ? 4 : 1;  // of all updates by each thread: more would need less memory
    const std::int64_t even = ((size_ + walks * threads - 1) / (walks * threads) + 63) / 64 * 64;
    const std::int64_t length = is_widened ? std::max(2 * block_elements, even) : even;
    auto* wide =
        is_widened ? reinterpret_cast<T*>(call_.scratch(static_cast<std::size_t>(call_.pool.size() * length) * sizeof(T))) : nullptr;
    call_.pool.parallel_for((size_ + length - 1) / length, 1, [&](std::int64_t begin, std::int64_t end, int worker) {
      for (std::int64_t part = begin; part < end; ++part) {
        const std::int64_t lo = part * length, hi = std::min(size_, lo + length);
        T* sums = open(lo, hi, wide ? wide + worker * length : nullptr);
        walk(lo, hi, sums);
        close(lo, hi, sums);
      }
    });
  }

  /// All lines of updates, in row-major order.
  void walk(std::int64_t lo, std::int64_t hi, T* sums) const {
    const std::vector<ScatterAxis>& axes = places_.axes();
    std::vector<std::int64_t> at(axes.size() - 1, 0);
    for (const ScatterAxis& axis : axes)
      if (axis.extent == 0) return;
    ScatterAxis from;  // of the line
    while (true) {
      add_line(from, axes.back(), lo, hi, sums);
      std::size_t d = at.size();
      while (d-- > 0) {
        move(from, axes[d], 1);
        if (++at[d] < axes[d].extent) break;
        move(from, axes[d], -at[d]);
        at[d] = 0;
      }
      if (d == static_cast<std::size_t>(-1)) return;
    }
  }
  static void move(ScatterAxis& from, const ScatterAxis& axis, std::int64_t steps) {
    from.update += steps * axis.update;
    from.result += steps * axis.result;
    from.index += steps * axis.index;
  }

  void add_line(const ScatterAxis& from, const ScatterAxis& line, std::int64_t lo, std::int64_t hi, T* sums) const {
    constexpr std::int64_t most = 256;
    std::int64_t starts[most];
    if (line.index == 0) places_.starts(from.index, 0, 1, starts);
    if (line.index == 0 && starts[0] < 0) return;
    if (line.index == 0 && line.result == 1 && line.update == 1) {
      const std::int64_t to = starts[0] + from.result, first = std::max(lo, to), last = std::min(hi, to + line.extent);
      if (first < last) combine_row<kind>(sums + (first - lo), updates_ + from.update + (first - to), last - first);
      return;
    }
    if (line.index == 0) std::fill(starts + 1, starts + most, starts[0]);
    for (std::int64_t i = 0; i < line.extent; i += most) {
      const std::int64_t n = std::min(most, line.extent - i);
      if (line.index != 0) places_.starts(from.index + i * line.index, line.index, n, starts);
      const S* updates = updates_ + from.update + i * line.update;
      for (std::int64_t k = 0; k < n; ++k) {
        const std::int64_t to = starts[k] + from.result + (i + k) * line.result;
        if (starts[k] < 0 || to < lo || to >= hi) continue;
        sums[to - lo] = combined<kind, T>(sums[to - lo], updates[k * line.update]);
      }
    }
  }

  // -- windows of rows that are equal or apart: they are brought into the order of the blocks of the result that they fall into

  /// How windows are counted, and what is behind each: the axes before `first` run over whole stretches of the result, those before `last`
  /// over windows, and perhaps one over the neighbours of a row.
  struct Rows {
    std::size_t first = 0, last = 0;
    std::int64_t windows = 1, stretches = 1, length = 1;
  };

  std::optional<Rows> find_rows() const {
    const std::vector<ScatterAxis>& axes = places_.axes();
    Rows rows;
    while (rows.first < axes.size() && axes[rows.first].index == 0) {
      if (places_.span() == 0 || axes[rows.first].result % places_.span() != 0) return {};
      rows.stretches *= axes[rows.first++].extent;
    }
    rows.last = rows.first;
    while (rows.last < axes.size() && axes[rows.last].index != 0) rows.windows *= axes[rows.last++].extent;
    if (rows.last + 1 == axes.size() && axes.back().result == 1 && axes.back().update == 1)
      rows.length = axes[rows.last++].extent, --rows.last;
    else if (rows.last != axes.size()) return {};
    const bool is_worth_it = is_widened || rows.length * static_cast<std::int64_t>(sizeof(S)) >= 64;
    const bool fits = places_.unit() <= block_elements && rows.windows <= std::int64_t{0xffffffff};
    const bool covers = rows.stretches * places_.span() == size_;
    return is_worth_it && fits && places_.are_apart() && rows.windows > 1 && covers ? std::optional(rows) : std::nullopt;
  }

  /// n windows from `first` on.
  void starts_of(std::int64_t first, std::int64_t n, std::int64_t* to) const {
    while (n > 0) {
      const ScatterAxis from = window(first), &line = places_.axes()[rows_->last - 1];
      const std::int64_t some = std::min(n, line.extent - first % line.extent);
      places_.starts(from.index, line.index, some, to);
      for (std::int64_t i = 0; i < some; ++i)
        if (to[i] >= 0) to[i] += from.result + i * line.result;
      first += some, n -= some, to += some;
    }
  }
  ScatterAxis window(std::int64_t number) const {
    ScatterAxis from;
    for (std::size_t d = rows_->last; d-- > rows_->first;) {
      const ScatterAxis& axis = places_.axes()[d];
      move(from, axis, number % axis.extent);
      number /= axis.extent;
    }
    return from;
  }

  /// Calls run(window, block) for a part of the windows that are not dropped.
  template <class Run>
  void for_windows(std::int64_t begin, std::int64_t end, std::int64_t block, const Run& run) const {
    constexpr std::int64_t most = 256;
    std::int64_t starts[most];
    for (std::int64_t i = begin; i < end; i += most) {
      const std::int64_t n = std::min(most, end - i);
      starts_of(i, n, starts);
      for (std::int64_t k = 0; k < n; ++k)
        if (starts[k] >= 0) run(static_cast<std::uint32_t>(i + k), starts[k] / block);
    }
  }

  /// Brings the windows into the order of blocks. Parts of them are counted and then moved by a thread each; in the end `ends` of the last
  /// part is where each block ends in `order`.
  void sort_windows(std::int64_t block, std::int64_t blocks, std::uint32_t* ends, std::uint32_t* order) const {
    const std::int64_t parts = call_.pool.size(), part = (rows_->windows + parts - 1) / parts;
    const auto for_parts = [&](const auto& run) {
      call_.pool.parallel_for(parts, 1, [&](std::int64_t begin, std::int64_t end, int) {
        for (std::int64_t p = begin; p < end; ++p)
          for_windows(std::min(rows_->windows, p * part), std::min(rows_->windows, (p + 1) * part), block,
                      [&](std::uint32_t window, std::int64_t b) { run(ends[p * blocks + b], window); });
      });
    };
    std::fill_n(ends, parts * blocks, 0);
    for_parts([](std::uint32_t& count, std::uint32_t) { ++count; });
    std::uint32_t place = 0;
    for (std::int64_t b = 0; b < blocks; ++b)
      for (std::int64_t p = 0; p < parts; ++p) place += std::exchange(ends[p * blocks + b], place);
    for_parts([order](std::uint32_t& end, std::uint32_t window) { order[end++] = window; });
  }

  void scatter_by_blocks() const {
    const std::int64_t block = block_elements / places_.unit() * places_.unit(), blocks = (places_.span() + block - 1) / block;
    const std::int64_t parts = call_.pool.size(), counters = parts * blocks, wide_elements = is_widened ? parts * block : 0;
    const auto wide_bytes = static_cast<std::size_t>(wide_elements) * sizeof(T);
    std::byte* space = call_.scratch(wide_bytes + static_cast<std::size_t>(counters + rows_->windows) * sizeof(std::uint32_t));
    auto* wide = reinterpret_cast<T*>(space);
    auto* ends = reinterpret_cast<std::uint32_t*>(space + wide_bytes);
    auto* order = ends + counters;
    sort_windows(block, blocks, ends, order);
    const std::uint32_t* last_ends = ends + (parts - 1) * blocks;
    call_.pool.parallel_pieces(rows_->stretches * blocks, 1, 1, [&](std::int64_t begin, std::int64_t end, int worker) {
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t b = i % blocks, lo = b * block, hi = std::min(places_.span(), lo + block);
        add_block(i / blocks, lo, hi, {order + (b == 0 ? 0 : last_ends[b - 1]), order + last_ends[b]}, wide + worker * block);
      }
    });
  }

  /// The whole row, as others lie far from it.
  void prefetch(const S* row) const {
    constexpr std::int64_t line = 64 / sizeof(S);
    for (std::int64_t i = 0; i < rows_->length; i += line) __builtin_prefetch(row + i);
  }

  void add_block(std::int64_t stretch, std::int64_t lo, std::int64_t hi, std::span<const std::uint32_t> windows, T* wide) const {
    ScatterAxis outer;
    for (std::size_t d = rows_->first; d-- > 0;) {
      const ScatterAxis& axis = places_.axes()[d];
      move(outer, axis, stretch % axis.extent);
      stretch /= axis.extent;
    }
    T* sums = open(outer.result + lo, outer.result + hi, wide);
    for (std::size_t i = 0; i < windows.size(); ++i) {
      constexpr std::size_t ahead = 2;
      if (i + ahead < windows.size()) prefetch(updates_ + outer.update + window(windows[i + ahead]).update);
      std::int64_t start = 0;
      starts_of(windows[i], 1, &start);
      combine_row<kind>(sums + (start - lo), updates_ + outer.update + window(windows[i]).update, rows_->length);
    }
    close(outer.result + lo, outer.result + hi, sums);
  }

  const RoutineCall& call_;
  const ScatterPlaces places_;
  const S *x_, *updates_;
  S* y_;
  const std::int64_t size_;
  const bool is_filled_;  // with one number
  const std::optional<Rows> rows_;
};

template <ScatterKind kind, class S>
void scatter(const RoutineCall& call) {
  Scattering<kind, S, std::conditional_t<is_narrow_float<S>, float, S>>(call).run();
}

void run(const RoutineCall& call) {
  const DType type = call.results[0].dtype;
  ScatterKind kind{};
  rlx::detail::from_attr(call.attrs[0], kind);
  switch (kind) {
    case ScatterKind::set: return with_width(type, [&]<class S>(S*) { scatter<ScatterKind::set, S>(call); });
    case ScatterKind::add: return with_number(type, [&]<class S>(S*) { scatter<ScatterKind::add, S>(call); });
    case ScatterKind::mul: return with_number(type, [&]<class S>(S*) { scatter<ScatterKind::mul, S>(call); });
    case ScatterKind::min: return with_ordered(type, [&]<class S>(S*) { scatter<ScatterKind::min, S>(call); });
    case ScatterKind::max: return with_ordered(type, [&]<class S>(S*) { scatter<ScatterKind::max, S>(call); });
  }
}

bool takes(const Graph& graph, const Node& node) {
  return !is_packed(node.results[0].dtype) && !is_packed(graph.type(node.operands[1]).dtype);
}

const RegisterRoutine scatter_routine({.op = "scatter", .takes = takes, .run = run, .filled = 0, .in_place_of = 0});

}  // namespace
}  // namespace rlx::cpu
