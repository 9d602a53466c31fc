#pragma once
#include <immintrin.h>

#include <utility>

#include "backends/cpu/quantized/block_kernel_table.h"
#include "backends/cpu/quantized/block_rows.h"
#include "backends/cpu/quantized/block_vectors_avx512.h"

// Products with block weights in AVX-512 VNNI: the codes of a whole panel and the sums of all rows of a tile are in registers.

namespace rlx::cpu {
namespace {

/// With few rows weights come from memory, and the computation between them keeps the processor from asking for the next ones in time. They
/// are asked for into the second-level cache, which takes more requests at a time than the first. Requests are dropped where too many are
/// under way; the processor's own, which are not, follow several panels at a time further than one.
constexpr int few_rows = 8;
constexpr std::int64_t prefetch_ahead = 8192;

/// `Codes` and `Scales` as in block_codes.h; `panels` that follow each other, C (rows, panels * columns).
template <class Codes, class Scales, RowFormat format, int rows, int panels>
void multiply_block_tile(const std::byte* scales, const std::byte* codes, std::int64_t blocks, const std::byte* x, float* c,
                         std::int64_t c_stride) {
  constexpr std::int64_t step = RowFormat::step, step_bytes = rows * format.row_bytes();
  constexpr int offset = format.offset, halves = format.halves;
  const std::byte* const end = codes + blocks * Scales::steps * Codes::step_bytes;
  const std::int64_t panel_bytes = end - scales;
  __m512 sums[panels][rows];
#pragma GCC unroll 16
  for (int r = 0; r < panels * rows; ++r) sums[r / rows][r % rows] = _mm512_setzero_ps();
  for (; codes < end; scales += Scales::bytes)
    for (std::int64_t s = 0; s < Scales::steps; ++s, codes += Codes::step_bytes, x += step_bytes) {
      // Behind a panel come those beside it, which are read meanwhile.
      const std::int64_t ahead = prefetch_ahead + (end - codes > prefetch_ahead ? 0 : (panels - 1) * panel_bytes);
#pragma GCC unroll 8
      for (int p = 0; p < panels; ++p) {
        const Scales of_block(scales + p * panel_bytes);
        const std::byte* const of_step = codes + p * panel_bytes;
        if constexpr (rows <= few_rows) {
#pragma GCC unroll 8
          for (int line = 0; line < Codes::step_bytes; line += 64) __builtin_prefetch(of_step + ahead + line, 0, 2);
        }
        Avx512::Fours weights[8];
        Codes::unpack(of_step, weights);
        const StepOfRows of_rows(format, x, rows);
        __m512 of_half[halves];
#pragma GCC unroll 2
        for (int half = 0; half < halves; ++half) of_half[half] = of_block.scale(s, half);
#pragma GCC unroll 16
        for (int r = 0; r < rows; ++r) {
          __m512 scaled = _mm512_setzero_ps(), &total = sums[p][r];
#pragma GCC unroll 2
          for (int half = 0; half < halves; ++half) {
            constexpr int vectors = 8 / halves;
            __m512i sum =
                offset != 0 ? _mm512_set1_epi32(read_as<std::int32_t>(of_rows.starts + 4 * (half * rows + r))) : _mm512_setzero_si512();
#pragma GCC unroll 8
            for (int j = half * vectors; j < (half + 1) * vectors; ++j)
              sum = _mm512_dpbusd_epi32(sum, reinterpret_cast<__m512i>(weights[j]),
                                        _mm512_set1_epi32(read_as<std::int32_t>(x + r * step + 4 * j)));
            const __m512 counted = _mm512_cvtepi32_ps(sum);
            scaled = half == 0 ? _mm512_mul_ps(counted, of_half[0]) : _mm512_fmadd_ps(counted, of_half[half], scaled);
            if constexpr (format.minima)
              total =
                  _mm512_fmadd_ps(of_block.minimum(s, half), _mm512_set1_ps(read_as<float>(of_rows.sums + 4 * (half * rows + r))), total);
          }
          total = _mm512_fmadd_ps(scaled, _mm512_set1_ps(read_as<float>(of_rows.scales + 4 * r)), total);
        }
      }
    }
#pragma GCC unroll 16
  for (int r = 0; r < panels * rows; ++r)
    _mm512_storeu_ps(c + r % rows * c_stride + r / rows * BlockKernel::columns, sums[r / rows][r % rows]);
}

/// For each of four vectors of four, what `join` makes of its elements.
template <class Join>
__m128i joined(const __m128i (&x)[4], const Join& join) {
  const __m128i first = join(_mm_unpacklo_epi32(x[0], x[1]), _mm_unpackhi_epi32(x[0], x[1])),
                last = join(_mm_unpacklo_epi32(x[2], x[3]), _mm_unpackhi_epi32(x[2], x[3]));
  return join(_mm_unpacklo_epi64(first, last), _mm_unpackhi_epi64(first, last));
}

/// Up to four steps of one row, side by side, as much of this waits for what was just computed: their codes, their scales, and the sums of
/// their halves' codes.
struct PackedSteps {
  static constexpr int most = 4;

  PackedSteps(const float* x, std::int64_t count) {
    __m512 values[most][2];
    __m128i largest[most];
#pragma GCC unroll 4
    for (int i = 0; i < most; ++i) {
      const float* const from = x + (i < count ? i : 0) * RowFormat::step;
      values[i][0] = _mm512_loadu_ps(from), values[i][1] = _mm512_loadu_ps(from + 16);
      largest[i] = largest_of(values[i][0], values[i][1]);
    }
    const __m128 all = _mm_castsi128_ps(joined(largest, [](__m128i a, __m128i b) { return _mm_max_epi32(a, b); })),
                 codes_of_largest = _mm_set1_ps(127);
    _mm_store_ps(scales, _mm_div_ps(all, codes_of_largest));
    alignas(16) float inverses[most];
    _mm_store_ps(inverses, _mm_maskz_div_ps(_mm_cmp_ps_mask(all, _mm_setzero_ps(), _CMP_GT_OQ), codes_of_largest, all));
    __m128i of_half[2][most];
#pragma GCC unroll 4
    for (int i = 0; i < most; ++i)
#pragma GCC unroll 2
      for (int half = 0; half < 2; ++half) {
        codes[i][half] = _mm512_cvtsepi32_epi8(_mm512_cvtps_epi32(_mm512_mul_ps(values[i][half], _mm512_set1_ps(inverses[i]))));
        // Of the saturated codes: a NaN becomes the least i32, which would overflow.
        of_half[half][i] = _mm_dpbusd_epi32(_mm_setzero_si128(), _mm_set1_epi8(1), codes[i][half]);
      }
    for (int half = 0; half < 2; ++half)
      _mm_store_si128(reinterpret_cast<__m128i*>(sums[half]),
                      joined(of_half[half], [](__m128i a, __m128i b) { return _mm_add_epi32(a, b); }));
  }

  __m128i codes[most][2];
  alignas(16) float scales[most];
  alignas(16) std::int32_t sums[2][most];

 private:
  /// Of each fourth magnitude the largest, compared as integers, so that a NaN is larger than all numbers.
  static __m128i largest_of(__m512 low, __m512 high) {
    const __m512i magnitude = _mm512_set1_epi32(0x7fffffff);
    const __m512i sixteen =
        _mm512_max_epi32(_mm512_and_si512(_mm512_castps_si512(low), magnitude), _mm512_and_si512(_mm512_castps_si512(high), magnitude));
    const __m256i eight = _mm256_max_epi32(_mm512_castsi512_si256(sixteen), _mm512_extracti64x4_epi64(sixteen, 1));
    return _mm_max_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
  }
};

struct TileKernels {
  template <class Codes, class Scales, RowFormat format>
  static constexpr BlockKernel type(std::string_view name, BlockKernel::PackPanel pack_panel) {
    BlockKernel kernel = empty_block_kernel<Codes, Scales>(name, format, pack_panel);
    kernel.pack_rows = pack_rows<PackedSteps>;
    [&]<int... index>(std::integer_sequence<int, index...>) {
      ((kernel.tiles[index + 1] = multiply_block_tile<Codes, Scales, format, index + 1, 1>), ...);
    }(std::make_integer_sequence<int, BlockKernel::most_rows>());
    [&]<int... index>(std::integer_sequence<int, index...>) {
      ((kernel.beside[index + 1] = multiply_block_tile<Codes, Scales, format, index + 1, BlockKernel::panels_beside>), ...);
    }(std::make_integer_sequence<int, BlockKernel::rows_beside>());
    return kernel;
  }
};

}  // namespace
}  // namespace rlx::cpu
