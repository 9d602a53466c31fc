#pragma once
#include "backends/cpu/gemm/micro_kernels/tile_config.h"
#include "backends/cpu/quantized/block_kernel_table.h"
#include "backends/cpu/quantized/block_rows.h"
#include "backends/cpu/quantized/block_vectors_avx512.h"

// Products of many rows with block weights by tiles of 16 rows: a panel of weights is unpacked to bytes with a sign, some steps at a time,
// so that they stay in the nearest cache while all rows pass by. The integer products of what has one scale are those of one pair of tiles;
// their sums in f32 follow in AVX-512, in the order and with the bits of block_tile.h.

namespace rlx::cpu {
namespace {

/// `Tiles` gives the registers, as in gemm/matrix_tile.h.
template <class Tiles, class Codes, class Scales, RowFormat format>
class MatrixBlockTile {
  using Floats = Avx512::Floats;
  using Ints = Avx512::Ints;
  static constexpr int side = BlockKernel::most_rows, halves = format.halves;
  static constexpr std::int64_t step = RowFormat::step, row_step_bytes = side * format.row_bytes();
  static constexpr std::int64_t steps_of_pass = 32;
  static_assert(side == Avx512::lanes && steps_of_pass % Scales::steps == 0);

  /// Steps of a panel.
  struct Weights {
    std::uint8_t codes[steps_of_pass][step * side];
    Floats scales[steps_of_pass][halves], minima[format.minima ? steps_of_pass : 1][halves];
  };

  /// Products of tiles 2 and 4 are summed in 0, those of 3 and 5 in 1.
  static constexpr TileConfig shapes = [] {
    TileConfig config;
    for (int tile = 0; tile < 6; ++tile) config.rows[tile] = side, config.row_bytes[tile] = 64;
    for (int x = 2; x < 4; ++x) config.row_bytes[x] = step / halves;
    for (int weights = 4; weights < 6; ++weights) config.rows[weights] = 8 / halves;
    return config;
  }();

  static void unpack(const std::byte* scales, const std::byte* codes, std::int64_t blocks, Weights& to) {
    std::int64_t at = 0;
    for (std::int64_t block = 0; block < blocks; ++block, scales += Scales::bytes) {
      const Scales of_block(scales);
      for (std::int64_t s = 0; s < Scales::steps; ++s, ++at, codes += Codes::step_bytes) {
        Avx512::Fours fours[8];
        Codes::unpack(codes, fours);
#pragma GCC unroll 8
        for (int j = 0; j < 8; ++j) {
          const __m512i code = _mm512_sub_epi8(reinterpret_cast<__m512i>(fours[j]), _mm512_set1_epi8(static_cast<char>(format.offset)));
          _mm512_store_si512(to.codes[at] + 64 * j, code);
        }
        for (int half = 0; half < halves; ++half) {
          to.scales[at][half] = of_block.scale(s, half);
          if constexpr (format.minima) to.minima[at][half] = of_block.minimum(s, half);
        }
      }
    }
  }

  /// The integer products of one half of a step.
  template <int which>
  static void multiply_half(const Weights& weights, std::int64_t at, int half, const std::byte* x, Ints (&products)[side]) {
    Tiles::template zero<which>();
    Tiles::template load<2 + which>(x + at * row_step_bytes + half * (step / halves), step);
    Tiles::template load<4 + which>(weights.codes[at] + half * (step * side / halves), 64);
    Tiles::template multiply_add<std::int8_t, which, 2 + which, 4 + which>();
    Tiles::template store<which>(products, 64);
  }

  /// Adds a step's products, those of each half, to the sums.
  [[gnu::always_inline]] static void add_step(const Weights& weights, std::int64_t at, const std::byte* x, const Ints (*products)[side],
                                              __m512 (&sums)[side]) {
    const StepOfRows<const std::byte> of_rows(format, x + at * row_step_bytes, side);
#pragma GCC unroll 16
    for (int r = 0; r < side; ++r) {
      __m512 scaled = __builtin_convertvector(products[0][r], Floats) * weights.scales[at][0];
      if constexpr (halves == 2) scaled = _mm512_fmadd_ps(__builtin_convertvector(products[1][r], Floats), weights.scales[at][1], scaled);
      if constexpr (format.minima)
        for (int half = 0; half < halves; ++half)
          sums[r] =
              _mm512_fmadd_ps(weights.minima[at][half], _mm512_set1_ps(read_as<float>(of_rows.sums + 4 * (half * side + r))), sums[r]);
      sums[r] = _mm512_fmadd_ps(scaled, _mm512_set1_ps(read_as<float>(of_rows.scales + 4 * r)), sums[r]);
    }
  }

  /// Adds the products of a tile of rows x with `steps` steps to `to`, the rows of the result.
  static void multiply_rows(const Weights& weights, std::int64_t steps, const std::byte* x, float* const (&to)[side], __mmask16 columns,
                            bool accumulate) {
    __m512 sums[side];
#pragma GCC unroll 16
    for (int r = 0; r < side; ++r) sums[r] = accumulate ? _mm512_maskz_loadu_ps(columns, to[r]) : _mm512_setzero_ps();
    Ints products[2][side];
    for (std::int64_t at = 0; at < steps; at += 2 / halves) {  // two at a time, so that one is multiplied while the other is summed
      const std::int64_t next = at + 2 / halves - 1;
      multiply_half<0>(weights, at, 0, x, products[0]);
      if (next < steps) multiply_half<1>(weights, next, halves - 1, x, products[1]);
      add_step(weights, at, x, products, sums);
      if (halves == 1 && next < steps) add_step(weights, next, x, products + 1, sums);
    }
#pragma GCC unroll 16
    for (int r = 0; r < side; ++r) _mm512_mask_storeu_ps(to[r], columns, sums[r]);
  }

 public:
  /// BlockKernel::Many.
  static void multiply(const std::byte* scales, const std::byte* codes, std::int64_t blocks, const BlockKernel::ManyRows& rows,
                       int columns) {
    constexpr std::int64_t blocks_of_pass = steps_of_pass / Scales::steps;
    const std::int64_t tile_bytes = blocks * Scales::steps * row_step_bytes;
    const auto mask = static_cast<__mmask16>((1u << columns) - 1);
    Weights weights;
    Tiles::configure(shapes);
    for (std::int64_t block = 0; block < blocks; block += blocks_of_pass) {
      const std::int64_t count = blocks - block < blocks_of_pass ? blocks - block : blocks_of_pass;
      unpack(scales + block * Scales::bytes, codes + block * Scales::steps * Codes::step_bytes, count, weights);
      const std::byte* x = rows.x + block * Scales::steps * row_step_bytes;
      for (std::int64_t row = 0; row < rows.count; row += side, x += tile_bytes) {
        float* to[side];
        for (std::int64_t r = 0; r < side; ++r) to[r] = rows.c + (rows.order ? rows.order[row + r] : row + r) * rows.c_stride;
        multiply_rows(weights, count * Scales::steps, x, to, mask, block > 0);
      }
    }
    Tiles::release();  // so that task switches do not save 8 KiB of tiles
  }
};

template <class Tiles>
struct MatrixBlockProducts {
  template <class Codes, class Scales, RowFormat format>
  static constexpr BlockKernel::Many type(std::string_view, BlockKernel::PackPanel) {
    return MatrixBlockTile<Tiles, Codes, Scales, format>::multiply;
  }
};

}  // namespace
}  // namespace rlx::cpu
