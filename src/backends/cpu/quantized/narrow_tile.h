#pragma once
#include <bit>
#include <utility>

#include "backends/cpu/quantized/block_kernel_table.h"
#include "backends/cpu/quantized/block_rows.h"

// Products with block weights where vectors hold a piece of a panel only, or registers are too few for the sums of a tile: a step is taken
// piece by piece, and its sums are added to those in memory, which the integer products in between leave time for.

namespace rlx::cpu {
namespace {

template <class V>
struct PackedStep {
  using Ints = typename V::Ints;
  static constexpr int vectors = RowFormat::step / V::lanes;

  static constexpr int most = 1;

  PackedStep(const float* x, std::int64_t) {
    typename V::Floats values[vectors];
#pragma GCC unroll 8
    for (int v = 0; v < vectors; ++v) values[v] = read_as<typename V::Floats>(reinterpret_cast<const std::byte*>(x + v * V::lanes));
    Ints largest{};  // as integers, so that a NaN is larger than all numbers
#pragma GCC unroll 8
    for (int v = 0; v < vectors; ++v) {
      const Ints magnitude = reinterpret_cast<Ints>(values[v]) & 0x7fffffff;
      largest = magnitude > largest ? magnitude : largest;
    }
    std::int32_t most_bits = 0;
    for (int lane = 0; lane < V::lanes; ++lane) most_bits = largest[lane] > most_bits ? largest[lane] : most_bits;
    const auto largest_value = std::bit_cast<float>(most_bits);
    const float inverse = largest_value > 0 ? 127 / largest_value : 0;
    scales[0] = largest_value / 127;
    constexpr float whole = 0x1.8p23F;  // beside it the last digit of a float is 1: adding it rounds to the nearest, in the lowest byte
    Ints rounded[vectors], of_half[2] = {};
#pragma GCC unroll 8
    for (int v = 0; v < vectors; ++v) {
      rounded[v] = reinterpret_cast<Ints>(values[v] * inverse + whole) - std::bit_cast<std::int32_t>(whole);
      const Ints most_code = Ints{} + 127;  // what a NaN becomes is larger, and its sums would overflow
      rounded[v] = rounded[v] > most_code ? most_code : rounded[v] < -most_code ? -most_code : rounded[v];
      of_half[v / (vectors / 2)] += rounded[v];
    }
    codes[0] = V::bytes(rounded);
    for (int lane = 0; lane < V::lanes; ++lane) sums[0][0] += of_half[0][lane], sums[1][0] += of_half[1][lane];
  }
  typename V::Bytes codes[1];
  float scales[1];
  std::int32_t sums[2][1] = {};
};

/// `Codes`, `Scales` and `V` as in block_codes.h; V also has
///   dot<Codes, begin, count>(weights, x), the products of the vectors of codes begin.. with the codes `x` of a row, summed as Ints
///   bytes(integers), the lowest bytes of 32 integers of at most 127
///   splat(x), and multiply_add(a, b, sum) = a * b + sum, rounded once where the CPU can
template <class V, class Codes, class Scales, RowFormat format>
struct NarrowTile {
  using Floats = typename V::Floats;
  static constexpr int columns = BlockKernel::columns;

  /// Adds a step of rows (rows, 32) * weights (V::lanes, 32)^T to sums (rows, lanes), which lie `columns` apart.
  static void add_step(const std::byte* codes, const Scales& of_block, std::int64_t step, const std::byte* x, int rows, float* sums) {
    typename V::Fours weights[8];
    Codes::unpack(codes, weights);
    const StepOfRows<const std::byte> of_rows(format, x, rows);
    const Floats scale = of_block.scale(step, 0), last_scale = of_block.scale(step, format.halves - 1);
    Floats minima[format.halves]{};
    if constexpr (format.minima)
      for (int half = 0; half < format.halves; ++half) minima[half] = of_block.minimum(step, half);
#pragma GCC unroll 2
    for (std::int64_t r = 0; r < rows; ++r) {
      Floats sum = read_as<Floats>(reinterpret_cast<const std::byte*>(sums + r * columns));
      Floats scaled = products<0>(weights, of_rows, rows, r) * scale;
      if constexpr (format.halves == 2) scaled = V::multiply_add(products<1>(weights, of_rows, rows, r), last_scale, scaled);
      if constexpr (format.minima)
        for (int half = 0; half < format.halves; ++half)
          sum = V::multiply_add(minima[half], V::splat(read_as<float>(of_rows.sums + 4 * (half * rows + r))), sum);
      sum = V::multiply_add(scaled, V::splat(read_as<float>(of_rows.scales + 4 * r)), sum);
      __builtin_memcpy(sums + r * columns, &sum, sizeof sum);
    }
  }

  /// The products of one row with one half of a step.
  template <int half>
  static Floats products(const typename V::Fours (&weights)[8], const StepOfRows<const std::byte>& of_rows, int rows, std::int64_t r) {
    constexpr int vectors = 8 / format.halves;
    typename V::Ints sum = V::template dot<Codes, half * vectors, vectors>(weights, of_rows.codes + r * RowFormat::step);
    if constexpr (format.offset != 0) sum += read_as<std::int32_t>(of_rows.starts + 4 * (half * rows + r));
    return __builtin_convertvector(sum, Floats);
  }

  static void multiply_rows(const std::byte* scales, const std::byte* codes, std::int64_t blocks, const std::byte* x, int rows, float* c,
                            std::int64_t c_stride) {
    alignas(64) float sums[BlockKernel::most_rows * columns];
    for (int i = 0; i < rows * columns; i += V::lanes) __builtin_memset(sums + i, 0, V::lanes * sizeof(float));
    const std::int64_t step_bytes = rows * format.row_bytes();
    for (std::int64_t block = 0; block < blocks; ++block, scales += Scales::bytes) {
      for (std::int64_t step = 0; step < Scales::steps; ++step, codes += Codes::step_bytes, x += step_bytes) {
        for (int line = 0; line < Codes::step_bytes; line += 64) __builtin_prefetch(codes + prefetch_ahead + line);
        for (int column = 0; column < columns; column += V::lanes)
          add_step(codes + 4 * column, Scales(scales, column), step, x, rows, sums + column);
      }
    }
    for (std::int64_t r = 0; r < rows; ++r) __builtin_memcpy(c + r * c_stride, sums + r * columns, columns * sizeof(float));
  }

  template <int rows>
  static void multiply(const std::byte* scales, const std::byte* codes, std::int64_t blocks, const std::byte* x, float* c,
                       std::int64_t c_stride) {
    multiply_rows(scales, codes, blocks, x, rows, c, c_stride);
  }

  static constexpr std::int64_t prefetch_ahead = 8192;
};

template <class V>
struct NarrowKernels {
  template <class Codes, class Scales, RowFormat format>
  static constexpr BlockKernel type(std::string_view name, BlockKernel::PackPanel pack_panel) {
    BlockKernel kernel = empty_block_kernel<Codes, Scales>(name, format, pack_panel);
    kernel.pack_rows = pack_rows<PackedStep<V>>;
    [&]<int... index>(std::integer_sequence<int, index...>) {
      ((kernel.tiles[index + 1] = NarrowTile<V, Codes, Scales, format>::template multiply<index + 1>), ...);
    }(std::make_integer_sequence<int, BlockKernel::most_rows>());
    return kernel;
  }
};

}  // namespace
}  // namespace rlx::cpu
