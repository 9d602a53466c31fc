#pragma once
#include <cstddef>
#include <cstdint>

#include "backends/cpu/attention/tiles/tile_kernel.h"
#include "backends/cpu/gemm/micro_kernels/tile_config.h"

namespace rlx::cpu {

/// C (16 * row_tiles, 16 * column_tiles) = or += A * B of bf16 numbers in pairs, `steps` times 16 units deep; `lanes` numbers from row to
/// row of C. `Tiles` gives the registers: see gemm/matrix_tile.h. Each of A and of B is loaded once for two products.
template <class Tiles, int row_tiles, int column_tiles>
void multiply_tiles(std::int64_t steps, const TileOperand& a, const TileOperand& b, float* c, std::int64_t lanes, bool accumulate) {
  constexpr int side = 16, c00 = 0, c01 = 1, c10 = 2, c11 = 3, a0 = 4, a1 = 5, b0 = 6, b1 = 7;
  const std::int64_t row_bytes = lanes * static_cast<std::int64_t>(sizeof(float));
  float* const lower = c + side * lanes;
  const auto start = [&]<int tile>(const float* from) {
    if (accumulate) Tiles::template load<tile>(from, row_bytes);
    else Tiles::template zero<tile>();
  };
  start.template operator()<c00>(c);
  if constexpr (column_tiles == 2) start.template operator()<c01>(c + side);
  if constexpr (row_tiles == 2) start.template operator()<c10>(lower);
  if constexpr (row_tiles == 2 && column_tiles == 2) start.template operator()<c11>(lower + side);
  for (std::int64_t step = 0; step < steps; ++step) {
    Tiles::template load<a0>(a.at(0, step), a.row_bytes);
    Tiles::template load<b0>(b.at(0, step), b.row_bytes);
    Tiles::template multiply_add<Bf16, c00, a0, b0>();
    if constexpr (column_tiles == 2) {
      Tiles::template load<b1>(b.at(1, step), b.row_bytes);
      Tiles::template multiply_add<Bf16, c01, a0, b1>();
    }
    if constexpr (row_tiles == 2) {
      Tiles::template load<a1>(a.at(1, step), a.row_bytes);
      Tiles::template multiply_add<Bf16, c10, a1, b0>();
    }
    if constexpr (row_tiles == 2 && column_tiles == 2) Tiles::template multiply_add<Bf16, c11, a1, b1>();
  }
  Tiles::template store<c00>(c, row_bytes);
  if constexpr (column_tiles == 2) Tiles::template store<c01>(c + side, row_bytes);
  if constexpr (row_tiles == 2) Tiles::template store<c10>(lower, row_bytes);
  if constexpr (row_tiles == 2 && column_tiles == 2) Tiles::template store<c11>(lower + side, row_bytes);
}

/// See TileProducts::Multiply. Rows in pairs of tiles, then one that is left.
template <class Tiles, int column_tiles>
void multiply_rows_of_tiles(std::int64_t rows, std::int64_t steps, const TileOperand& a, const TileOperand& b, float* c,
                            const float* decay) {
  constexpr std::int64_t side = 16, lanes = column_tiles * side;
  for (std::int64_t row = 0; decay && row < rows; ++row)
    for (std::int64_t lane = 0; lane < lanes; ++lane) c[row * lanes + lane] *= decay[lane];
  Tiles::configure(whole_tiles);
  for (std::int64_t row = 0; row < rows; row += 2 * side) {
    const TileOperand mine{a.at(row / side, 0), a.row_bytes, a.tile_bytes, a.step_bytes};
    float* const to = c + row * lanes;
    if (rows - row >= 2 * side) multiply_tiles<Tiles, 2, column_tiles>(steps, mine, b, to, lanes, decay != nullptr);
    else multiply_tiles<Tiles, 1, column_tiles>(steps, mine, b, to, lanes, decay != nullptr);
  }
  Tiles::release();  // so that task switches do not save 8 KiB of tiles
}

template <class Tiles>
consteval TileProducts make_tile_products() {
  return {{multiply_rows_of_tiles<Tiles, 1>, multiply_rows_of_tiles<Tiles, 2>}};
}

}  // namespace rlx::cpu
