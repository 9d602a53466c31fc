#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "backends/cpu/gemm/micro_kernels/dot_tile.h"
#include "backends/cpu/gemm/micro_kernels/micro_kernel.h"
#include "backends/cpu/gemm/micro_kernels/winograd_tile.h"

namespace rlx::cpu {

/// With few rows narrow weights come from memory, and the processor does not ask for the next ones in time.
constexpr int few_rows = 4;
constexpr std::int64_t prefetch_ahead = 8192;  // bytes

/// A step of depth whose rows lie side by side.
template <class T>
struct SideBySide {
  const T* first;
  const T* row(int r) const { return first + r; }
};

/// A step of depth whose rows lie `stride` apart, found from every fifth of them. The compiler must not know that the steps of a loop have
/// much in common: it would keep a pointer to each row, for which there are no registers.
template <class T>
struct Apart {
  static constexpr int group = 5, groups = 3;
  const std::byte* bases[groups];
  std::int64_t stride;  // in bytes

  [[gnu::always_inline]] Apart(const T* first, std::int64_t byte_stride) : stride(byte_stride) {
    const std::byte* base = reinterpret_cast<const std::byte*>(first);
#pragma GCC unroll 3
    for (int i = 0; i < groups; ++i) {
      asm("" : "+r"(base));
      bases[i] = base;
      base += group * stride;
    }
  }
  const T* row(int r) const { return reinterpret_cast<const T*>(bases[r / group] + r % group * stride); }
};

/// Whether vectors can be loaded and stored in part: by a `Simd::mask` of so many lanes.
template <class Simd>
constexpr bool has_masks = requires { Simd::mask(std::int64_t{}); };

/// The mask of so many lanes, none and all included.
template <class Mask>
constexpr Mask first_lanes(std::int64_t count, int lanes) {
  return static_cast<Mask>((std::uint32_t{1} << (count < 0 ? 0 : count < lanes ? count : lanes)) - 1);
}

/// A depth of whole units.
struct NoRest {};

/// C (rows, vectors) = or += A * B, all sums in registers. `Simd` gives the element and vector types, the shape of the
/// register tile, and load, store, broadcast, zero and multiply_add. Where they differ from those of sums, it also has
/// `load_units` of the operands; and `raised`, where the kernel is. `rest`: NoRest, or how the unit behind
/// `depth` whole ones is broadcast, where it says that there is one. `part`: with masks, of C's first `cols` columns.
///
/// Each file that instantiates this is compiled for another instruction set, so its `Simd` must be in an unnamed namespace: the linker
/// would otherwise be free to keep one instantiation for all levels.
template <class Simd, int rows, int vectors, bool part, class Step, class Broadcast, class Rest>
[[gnu::always_inline]] inline void multiply_rows(std::int64_t depth, const Step& step_of_a, const Broadcast& broadcast,
                                                 [[maybe_unused]] const Rest& rest, const Packed<typename Simd::Element>* b,
                                                 [[maybe_unused]] const Sum<typename Simd::Element>* start, Sum<typename Simd::Element>* c,
                                                 std::int64_t c_stride, [[maybe_unused]] std::int64_t cols, bool accumulate) {
  using Vector = typename Simd::Vector;
  constexpr int panel_cols = Simd::panel_vectors * Simd::lanes;
  const auto load_right = [](const Packed<typename Simd::Element>* from) {
    if constexpr (requires { Simd::load_units(from); }) return Simd::load_units(from);
    else return Simd::load(from);
  };
  const auto load_sums = [&](const Sum<typename Simd::Element>* row, int v) __attribute__((always_inline)) {
    if constexpr (part) return Simd::load(row + v * Simd::lanes, Simd::mask(cols - v * Simd::lanes));
    else return Simd::load(row + v * Simd::lanes);
  };
  Vector sums[rows][vectors];
#pragma GCC unroll 16
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 16
    for (int v = 0; v < vectors; ++v) {
      if (accumulate) sums[r][v] = load_sums(c + r * c_stride, v);
      else if constexpr (requires { Simd::raised; }) sums[r][v] = Simd::load(start + v * Simd::lanes);
      else sums[r][v] = Simd::zero();
    }
  }
  const auto add_step = [&](std::int64_t k, const auto& broadcast_unit) __attribute__((always_inline)) {
    const auto a = step_of_a(k);
    if constexpr (rows <= few_rows && sizeof(Packed<typename Simd::Element>) < sizeof(Left<typename Simd::Element>)) {
#pragma GCC unroll 4
      for (std::size_t line = 0; line < vectors * Simd::lanes * sizeof(*b); line += 64)
        __builtin_prefetch(reinterpret_cast<const std::byte*>(b) + prefetch_ahead + line);
    }
    decltype(load_right(b)) right[vectors];
#pragma GCC unroll 16
    for (int v = 0; v < vectors; ++v) right[v] = load_right(b + v * Simd::lanes);
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) {
      const auto left = broadcast_unit(a.row(r));
#pragma GCC unroll 16
      for (int v = 0; v < vectors; ++v) sums[r][v] = Simd::multiply_add(left, right[v], sums[r][v]);
    }
  };
  for (std::int64_t k = 0; k < depth; ++k, b += panel_cols) add_step(k, broadcast);
  if constexpr (!std::is_same_v<Rest, NoRest>)
    if (rest.is_there()) add_step(depth, rest);
#pragma GCC unroll 16
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 16
    for (int v = 0; v < vectors; ++v) {
      Sum<typename Simd::Element>* const to = c + r * c_stride + v * Simd::lanes;
      if constexpr (part) Simd::store(to, sums[r][v], Simd::mask(cols - v * Simd::lanes));
      else Simd::store(to, sums[r][v]);
    }
  }
}

/// The unit of narrow elements that a row ends in: read with the elements before it, as none need follow.
template <class Simd>
struct RestOfRow {
  using Element = Left<typename Simd::Element>;
  static constexpr int group = static_cast<int>(Format<typename Simd::Element>::group);
  int elements;  // in 0..group

  bool is_there() const { return elements > 0; }
  [[gnu::always_inline]] auto operator()(const Element* from) const {
    const int before = group - elements;
    std::uint32_t unit;
    std::memcpy(&unit, from - before, sizeof(unit));
    unit >>= 8 * static_cast<int>(sizeof(Element)) * before;
    if constexpr (requires { Simd::raised; }) return Simd::raise(Simd::broadcast(&unit));
    else return Simd::broadcast(&unit);
  }
};

/// Kernels of so many vectors: bodies of their own, as the compiler finds the addresses of all that a function may do before it does any.
template <class Simd, int rows, int vectors, bool part>
[[gnu::noinline]] void multiply_side_by_side(std::int64_t depth, const Packed<Left<typename Simd::Element>>* a,
                                             const Packed<typename Simd::Element>* b, const Sum<typename Simd::Element>* start,
                                             Sum<typename Simd::Element>* c, std::int64_t c_stride, std::int64_t cols, bool accumulate) {
  const auto step_of_a = [a](std::int64_t k) { return SideBySide{a + k * rows}; };
  multiply_rows<Simd, rows, vectors, part>(depth, step_of_a, Simd::broadcast, NoRest{}, b, start, c, c_stride, cols, accumulate);
}

template <class Simd, int rows, int vectors, bool part>
[[gnu::noinline]] void multiply_apart(std::int64_t depth, const Left<typename Simd::Element>* a, std::int64_t stride,
                                      const std::int64_t* steps, const Packed<typename Simd::Element>* b,
                                      const Sum<typename Simd::Element>* start, Sum<typename Simd::Element>* c, std::int64_t c_stride,
                                      std::int64_t cols, bool accumulate) {
  using T = typename Simd::Element;
  const auto broadcast = [](const Left<T>* from) {
    Packed<Left<T>> unit;
    std::memcpy(&unit, from, sizeof(unit));  // units of narrow elements lie anywhere
    if constexpr (requires { Simd::raised; }) return Simd::raise(Simd::broadcast(&unit));
    else return Simd::broadcast(&unit);
  };
  static_assert(rows <= Apart<Left<T>>::group * Apart<Left<T>>::groups);
  const std::int64_t bytes = stride * static_cast<std::int64_t>(sizeof(Left<T>));
  const auto by_one = [a, bytes](std::int64_t k) { return Apart<Left<T>>(a + k * Format<T>::group, bytes); };
  const auto by_table = [a, bytes, steps](std::int64_t k) { return Apart<Left<T>>(a + steps[k], bytes); };
  if constexpr (constexpr std::int64_t group = Format<T>::group; group > 1) {
    const RestOfRow<Simd> rest{static_cast<int>(depth % group)};
    multiply_rows<Simd, rows, vectors, part>(depth / group, by_one, broadcast, rest, b, start, c, c_stride, cols, accumulate);
  } else if (steps) {
    multiply_rows<Simd, rows, vectors, part>(depth, by_table, broadcast, NoRest{}, b, start, c, c_stride, cols, accumulate);
  } else {
    multiply_rows<Simd, rows, vectors, part>(depth, by_one, broadcast, NoRest{}, b, start, c, c_stride, cols, accumulate);
  }
}

/// A tile by as few vectors as hold its columns.
template <class Simd, int rows>
void multiply_tile(std::int64_t depth, const Packed<Left<typename Simd::Element>>* a, const Packed<typename Simd::Element>* b,
                   const Sum<typename Simd::Element>* start, Sum<typename Simd::Element>* c, std::int64_t c_stride, std::int64_t cols,
                   bool accumulate) {
  constexpr int vectors = Simd::panel_vectors;
  auto kernel = multiply_side_by_side<Simd, rows, vectors, false>;
  if constexpr (has_masks<Simd>) {
    if (cols <= Simd::lanes) kernel = multiply_side_by_side<Simd, rows, 1, true>;
    else if (cols < vectors * Simd::lanes) kernel = multiply_side_by_side<Simd, rows, vectors, true>;
  }
  kernel(depth, a, b, start, c, c_stride, cols, accumulate);
}

template <class Simd, int rows>
void multiply_in_place(std::int64_t depth, const Left<typename Simd::Element>* a, std::int64_t stride, const std::int64_t* steps,
                       const Packed<typename Simd::Element>* b, const Sum<typename Simd::Element>* start, Sum<typename Simd::Element>* c,
                       std::int64_t c_stride, std::int64_t cols, bool accumulate) {
  constexpr int vectors = Simd::panel_vectors;
  auto kernel = multiply_apart<Simd, rows, vectors, false>;
  if constexpr (has_masks<Simd>) {
    if (cols <= Simd::lanes) kernel = multiply_apart<Simd, rows, 1, true>;
    else if (cols < vectors * Simd::lanes) kernel = multiply_apart<Simd, rows, vectors, true>;
  }
  kernel(depth, a, stride, steps, b, start, c, c_stride, cols, accumulate);
}

template <class Simd>
void multiply_beside(std::int64_t depth, const Left<typename Simd::Element>* a, const Packed<typename Simd::Element>* b,
                     std::int64_t panel_units, Sum<typename Simd::Element>* c, bool accumulate) {
  using T = typename Simd::Element;
  constexpr int vectors = Simd::panel_vectors, panels = MicroKernel<T>::panels_beside, panel_cols = vectors * Simd::lanes;
  typename Simd::Vector sums[panels * vectors];
#pragma GCC unroll 16
  for (int v = 0; v < panels * vectors; ++v) sums[v] = accumulate ? Simd::load(c + v * Simd::lanes) : Simd::zero();
  for (std::int64_t k = 0; k < depth; ++k, b += panel_cols) {
    const auto left = Simd::broadcast(a + k);
#pragma GCC unroll 16
    for (int v = 0; v < panels * vectors; ++v) {
      const Packed<T>* const from = b + v / vectors * panel_units + v % vectors * Simd::lanes;
      if constexpr (requires { Simd::load_units(from); }) sums[v] = Simd::multiply_add(left, Simd::load_units(from), sums[v]);
      else sums[v] = Simd::multiply_add(left, Simd::load(from), sums[v]);
    }
  }
#pragma GCC unroll 16
  for (int v = 0; v < panels * vectors; ++v) Simd::store(c + v * Simd::lanes, sums[v]);
}

template <class Simd>
consteval MicroKernel<typename Simd::Element> make_micro_kernel() {
  MicroKernel<typename Simd::Element> kernel;
  kernel.raised = requires { Simd::raised; };
  kernel.stores_parts = has_masks<Simd>;
  kernel.max_rows = Simd::max_rows;
  kernel.panel_cols = Simd::panel_vectors * Simd::lanes;
  [&]<int... index>(std::integer_sequence<int, index...>) {
    ((kernel.tiles[index + 1] = multiply_tile<Simd, index + 1>), ...);
    ((kernel.rows_in_place[index + 1] = multiply_in_place<Simd, index + 1>), ...);
  }(std::make_integer_sequence<int, Simd::max_rows>());
  if constexpr (std::is_floating_point_v<Left<typename Simd::Element>>) kernel.beside = multiply_beside<Simd>;
  if constexpr (std::is_floating_point_v<typename Simd::Element>) {
    kernel.transform_window = transform_window<Simd>;
    kernel.transform_products = transform_products<Simd>;
    kernel = with_dots<Simd>(kernel);
  }
  return kernel;
}

}  // namespace rlx::cpu
