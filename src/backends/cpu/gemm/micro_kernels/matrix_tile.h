#pragma once
#include <cstdint>

#include "backends/cpu/gemm/micro_kernels/micro_kernel.h"
#include "backends/cpu/gemm/micro_kernels/tile_config.h"

namespace rlx::cpu {

/// C (16 * row_tiles, 32) = or += A * B by products of whole tiles: 2 x 2 sums where there are two tiles of rows, so that each of A and of
/// B is loaded once for two products. `Tiles` gives the registers, numbered 0..7: configure, release, zero, load, store, and multiply_add
/// of elements T, which is C += A * B for A (16 rows, 16 units) and B (16 units, 16 columns).
///
/// As with tile.h, a `Tiles` for another instruction set must be in an unnamed namespace.
template <class Tiles, class T, int row_tiles>
void multiply_matrix_tiles(std::int64_t depth, const Packed<T>* a, const Packed<T>* b, const Sum<T>*, Sum<T>* c, std::int64_t c_stride,
                           std::int64_t /*cols*/, bool accumulate) {
  constexpr int side = 16, panel_cols = 2 * side;
  constexpr std::int64_t row_bytes = side * sizeof(Packed<T>), b_row_bytes = panel_cols * sizeof(Packed<T>);
  constexpr int c00 = 0, c01 = 1, c10 = 2, c11 = 3, a0 = 4, a1 = 5, b0 = 6, b1 = 7;
  const std::int64_t c_row_bytes = c_stride * static_cast<std::int64_t>(sizeof(Sum<T>));
  Sum<T>* const lower = c + side * c_stride;
  if (accumulate) {
    Tiles::template load<c00>(c, c_row_bytes);
    Tiles::template load<c01>(c + side, c_row_bytes);
    if constexpr (row_tiles == 2) {
      Tiles::template load<c10>(lower, c_row_bytes);
      Tiles::template load<c11>(lower + side, c_row_bytes);
    }
  } else {
    Tiles::template zero<c00>();
    Tiles::template zero<c01>();
    if constexpr (row_tiles == 2) {
      Tiles::template zero<c10>();
      Tiles::template zero<c11>();
    }
  }
  for (std::int64_t unit = 0; unit < depth; unit += side, a += row_tiles * side * side, b += side * panel_cols) {
    Tiles::template load<a0>(a, row_bytes);
    Tiles::template load<b0>(b, b_row_bytes);
    Tiles::template multiply_add<T, c00, a0, b0>();
    Tiles::template load<b1>(b + side, b_row_bytes);
    Tiles::template multiply_add<T, c01, a0, b1>();
    if constexpr (row_tiles == 2) {
      Tiles::template load<a1>(a + side * side, row_bytes);
      Tiles::template multiply_add<T, c10, a1, b0>();
      Tiles::template multiply_add<T, c11, a1, b1>();
    }
  }
  Tiles::template store<c00>(c, c_row_bytes);
  Tiles::template store<c01>(c + side, c_row_bytes);
  if constexpr (row_tiles == 2) {
    Tiles::template store<c10>(lower, c_row_bytes);
    Tiles::template store<c11>(lower + side, c_row_bytes);
  }
}

template <class Tiles>
void configure_whole_tiles() {
  Tiles::configure(whole_tiles);
}

template <class Tiles, class T>
consteval MicroKernel<T> make_matrix_tile_kernel() {
  MicroKernel<T> kernel;
  kernel.max_rows = kernel.panel_cols = 32;
  kernel.row_step = kernel.depth_step = 16;
  kernel.longest_pass = 512;  // with 256, a panel of B stays in the first level's cache, but sums are stored and loaded twice as often
  kernel.tiles[16] = multiply_matrix_tiles<Tiles, T, 1>;
  kernel.tiles[32] = multiply_matrix_tiles<Tiles, T, 2>;
  kernel.begin = configure_whole_tiles<Tiles>;
  kernel.end = Tiles::release;  // so that task switches do not save 8 KiB of tiles
  return kernel;
}

}  // namespace rlx::cpu
