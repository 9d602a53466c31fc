#pragma once
#include <immintrin.h>

#include <utility>

#include "backends/cpu/quantised/block_kernel.h"

// The pieces of a product with block weights in AVX-512 VNNI. A step of 32 values is eight vectors of codes: vector j holds the codes 4j to
// 4j + 3 of 16 rows of weights. What differs between the block types is how these vectors and the scales are found.

namespace rlx::cpu {
namespace {

inline __m512i load64(const std::byte* from) { return _mm512_loadu_si512(from); }
inline __m512 load_halves(const std::byte* from) { return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from))); }
inline __m512 load_unsigned_bytes(const std::byte* from) {
  return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from))));
}
inline __m512 load_signed_bytes(const std::byte* from) {
  return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from))));
}

// -- codes

/// 4 bits: the low halves of bytes are the first 16 codes of a step, the high ones the last 16.
struct Nibbles {
  static constexpr std::int64_t step_bytes = 256;
  static void unpack(const std::byte* from, __m512i (&codes)[8]) {
    const __m512i low = _mm512_set1_epi8(15);
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
      const __m512i both = load64(from + 64 * j);
      codes[j] = _mm512_and_si512(both, low);
      codes[4 + j] = _mm512_and_si512(_mm512_srli_epi16(both, 4), low);
    }
  }
};

/// 4 bits that name one of 16 numbers, raised by 128.
template <const std::int8_t (&table)[16]>
struct NamedNibbles {
  static constexpr std::int64_t step_bytes = Nibbles::step_bytes;
  static void unpack(const std::byte* from, __m512i (&codes)[8]) {
    Nibbles::unpack(from, codes);
    const __m128i signed_numbers = _mm_loadu_si128(reinterpret_cast<const __m128i*>(table));
    const __m512i numbers = _mm512_broadcast_i32x4(_mm_xor_si128(signed_numbers, _mm_set1_epi8(-128)));
#pragma GCC unroll 8
    for (__m512i& code : codes) code = _mm512_shuffle_epi8(numbers, code);
  }
};

/// 5 bits: nibbles, and in the byte behind them for each place of a vector the fifth bits of its eight codes.
struct FiveBits {
  static constexpr std::int64_t step_bytes = Nibbles::step_bytes + 64;
  static void unpack(const std::byte* from, __m512i (&codes)[8]) {
    Nibbles::unpack(from, codes);
    const __m512i fifth = load64(from + Nibbles::step_bytes), bit = _mm512_set1_epi8(16);
#pragma GCC unroll 8
    for (int j = 0; j < 8; ++j) {
      const __m512i moved =
          j < 4 ? _mm512_slli_epi16(fifth, static_cast<unsigned>(4 - j)) : _mm512_srli_epi16(fifth, static_cast<unsigned>(j - 4));
      codes[j] = _mm512_or_si512(codes[j], _mm512_and_si512(moved, bit));
    }
  }
};

/// 6 bits: nibbles, and two vectors with the upper two bits of four vectors of codes each.
struct SixBits {
  static constexpr std::int64_t step_bytes = Nibbles::step_bytes + 128;
  static void unpack(const std::byte* from, __m512i (&codes)[8]) {
    Nibbles::unpack(from, codes);
    const __m512i bits = _mm512_set1_epi8(48);
#pragma GCC unroll 8
    for (int j = 0; j < 8; ++j) {
      const __m512i upper = load64(from + Nibbles::step_bytes + 64 * (j / 4));
      const int up = 4 - 2 * (j % 4);
      const __m512i moved =
          up >= 0 ? _mm512_slli_epi16(upper, static_cast<unsigned>(up)) : _mm512_srli_epi16(upper, static_cast<unsigned>(-up));
      codes[j] = _mm512_or_si512(codes[j], _mm512_and_si512(moved, bits));
    }
  }
};

/// 8 bits, raised by 128.
struct WholeBytes {
  static constexpr std::int64_t step_bytes = 512;
  static void unpack(const std::byte* from, __m512i (&codes)[8]) {
#pragma GCC unroll 8
    for (int j = 0; j < 8; ++j) codes[j] = load64(from + 64 * j);
  }
};

// -- scales

/// One half-precision scale for a step.
struct HalfScale {
  static constexpr std::int64_t steps = 1, bytes = 32;
  explicit HalfScale(const std::byte* from) : d(load_halves(from)) {}
  __m512 scale(std::int64_t, int) const { return d; }
  __m512 d;
};

/// A scale and the number that stands for code 0.
struct HalfScaleAndStart {
  static constexpr std::int64_t steps = 1, bytes = 64;
  explicit HalfScaleAndStart(const std::byte* from) : d(load_halves(from)), m(load_halves(from + 32)) {}
  __m512 scale(std::int64_t, int) const { return d; }
  __m512 minimum(std::int64_t, int) const { return m; }
  __m512 d, m;
};

/// Powers of two: the biased exponent of twice the scale, as the codes are doubled.
struct ExponentScale {
  static constexpr std::int64_t steps = 1, bytes = 16;
  explicit ExponentScale(const std::byte* from) {
    const __m512i e = _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
    const __m512i normal = _mm512_slli_epi32(_mm512_sub_epi32(e, _mm512_set1_epi32(1)), 23);
    const __m512i tiny = _mm512_sllv_epi32(_mm512_set1_epi32(0x200000), e);  // e of 0 and 1: below the normal floats
    d = _mm512_castsi512_ps(_mm512_mask_mov_epi32(normal, _mm512_cmplt_epi32_mask(e, _mm512_set1_epi32(2)), tiny));
  }
  __m512 scale(std::int64_t, int) const { return d; }
  __m512 d;
};

/// Eight steps with scales and minima of 6 bits (held as bytes) in units of one half-precision number each.
struct SuperScaleAndMinimum {
  static constexpr std::int64_t steps = 8, bytes = 320;
  explicit SuperScaleAndMinimum(const std::byte* from)
      : at(from), d(load_halves(from)), m(_mm512_sub_ps(_mm512_setzero_ps(), load_halves(from + 32))) {}
  __m512 scale(std::int64_t step, int) const { return _mm512_mul_ps(d, load_unsigned_bytes(at + 64 + 16 * step)); }
  __m512 minimum(std::int64_t step, int) const { return _mm512_mul_ps(m, load_unsigned_bytes(at + 192 + 16 * step)); }
  const std::byte* at;
  __m512 d, m;
};

/// Eight steps whose halves (or wholes) have scales of signed bytes in units of one half-precision number.
template <int halves>
struct SuperScale {
  static constexpr std::int64_t steps = 8, bytes = 32 + 128 * halves;
  explicit SuperScale(const std::byte* from) : at(from), d(load_halves(from)) {}
  __m512 scale(std::int64_t step, int half) const { return _mm512_mul_ps(d, load_signed_bytes(at + 32 + 16 * (step * halves + half))); }
  const std::byte* at;
  __m512 d;
};

// -- the product

template <class T>
T read_as(const std::byte* from) {
  T value;
  __builtin_memcpy(&value, from, sizeof value);
  return value;
}

/// With few rows weights come from memory, and the computation between them keeps the processor from asking for the next ones in time.
constexpr int few_rows = 8;
constexpr std::int64_t prefetch_ahead = 8192;

/// `Codes` and `Scales` as above; `offset`, `halves` and `minima` as in RowFormat.
template <class Codes, class Scales, int offset, int halves, bool minima, int rows>
void multiply_block_tile(const std::byte* scales, const std::byte* codes, std::int64_t blocks, const std::byte* x, float* c,
                         std::int64_t c_stride) {
  constexpr std::int64_t step = RowFormat::step, step_bytes = rows * RowFormat{offset, halves, minima}.row_bytes();
  __m512 sums[rows];
#pragma GCC unroll 16
  for (int r = 0; r < rows; ++r) sums[r] = _mm512_setzero_ps();
  for (std::int64_t block = 0; block < blocks; ++block, scales += Scales::bytes) {
    const Scales of_block(scales);
    for (std::int64_t s = 0; s < Scales::steps; ++s, codes += Codes::step_bytes, x += step_bytes) {
      if constexpr (rows <= few_rows) {
#pragma GCC unroll 8
        for (int line = 0; line < Codes::step_bytes; line += 64) __builtin_prefetch(codes + prefetch_ahead + line);
      }
      __m512i weights[8];
      Codes::unpack(codes, weights);
      const std::byte *x_scales = x + rows * step, *starts = x_scales + rows * 4, *x_sums = starts + (offset != 0 ? rows * 4 * halves : 0);
      __m512 of_half[halves];
#pragma GCC unroll 2
      for (int half = 0; half < halves; ++half) of_half[half] = of_block.scale(s, half);
#pragma GCC unroll 16
      for (int r = 0; r < rows; ++r) {
        __m512 scaled = _mm512_setzero_ps();
#pragma GCC unroll 2
        for (int half = 0; half < halves; ++half) {
          constexpr int vectors = 8 / halves;
          __m512i sum = offset != 0 ? _mm512_set1_epi32(read_as<std::int32_t>(starts + 4 * (half * rows + r))) : _mm512_setzero_si512();
#pragma GCC unroll 8
          for (int j = half * vectors; j < (half + 1) * vectors; ++j)
            sum = _mm512_dpbusd_epi32(sum, weights[j], _mm512_set1_epi32(read_as<std::int32_t>(x + r * step + 4 * j)));
          const __m512 counted = _mm512_cvtepi32_ps(sum);
          scaled = half == 0 ? _mm512_mul_ps(counted, of_half[0]) : _mm512_fmadd_ps(counted, of_half[half], scaled);
          if constexpr (minima)
            sums[r] = _mm512_fmadd_ps(of_block.minimum(s, half), _mm512_set1_ps(read_as<float>(x_sums + 4 * (half * rows + r))), sums[r]);
        }
        sums[r] = _mm512_fmadd_ps(scaled, _mm512_set1_ps(read_as<float>(x_scales + 4 * r)), sums[r]);
      }
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < rows; ++r) _mm512_storeu_ps(c + r * c_stride, sums[r]);
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

/// Writes step `i` of `packed` where row `r` of `rows` has it in a tile.
inline void write_step(const RowFormat& format, const PackedSteps& packed, int i, std::int64_t r, std::int64_t rows, std::byte* step) {
  const auto write = [](std::byte* to, auto value) { __builtin_memcpy(to, &value, sizeof value); };
  _mm_storeu_si128(reinterpret_cast<__m128i*>(step + r * RowFormat::step), packed.codes[i][0]);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(step + r * RowFormat::step + 16), packed.codes[i][1]);
  std::byte* const scales = step + rows * RowFormat::step;
  write(scales + 4 * r, packed.scales[i]);
  std::byte* const starts = scales + 4 * rows;
  std::byte* const sums = starts + (format.offset != 0 ? 4 * rows * format.halves : 0);
  for (int half = 0; half < format.halves; ++half) {
    const std::int32_t sum = format.halves == 1 ? packed.sums[0][i] + packed.sums[1][i] : packed.sums[half][i];
    if (format.offset != 0) write(starts + 4 * (half * rows + r), -format.offset * sum);
    if (format.minima) write(sums + 4 * (half * rows + r), packed.scales[i] * static_cast<float>(sum));
  }
}

inline void pack_rows_vnni(const RowFormat& format, const float* x, std::int64_t x_stride, int rows, std::int64_t k, std::byte* tile) {
  const std::int64_t step_bytes = rows * format.row_bytes(), steps = k / RowFormat::step;
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t s = 0; s < steps; s += PackedSteps::most) {
      const std::int64_t count = steps - s < PackedSteps::most ? steps - s : PackedSteps::most;
      const PackedSteps packed(x + r * x_stride + s * RowFormat::step, count);
      for (int i = 0; i < count; ++i) write_step(format, packed, i, r, rows, tile + (s + i) * step_bytes);
    }
}

template <class Codes, class Scales, int offset, int halves, bool minima>
constexpr BlockKernel make_block_kernel(std::string_view type, BlockKernel::PackPanel pack_panel) {
  BlockKernel kernel;
  kernel.type = type;
  kernel.rows = {offset, halves, minima};
  kernel.block_values = Scales::steps * RowFormat::step;
  kernel.scale_bytes = Scales::bytes;
  kernel.code_bytes = Scales::steps * Codes::step_bytes;
  kernel.pack_rows = pack_rows_vnni;
  kernel.pack_panel = pack_panel;
  [&]<int... index>(std::integer_sequence<int, index...>) {
    ((kernel.tiles[index + 1] = multiply_block_tile<Codes, Scales, offset, halves, minima, index + 1>), ...);
  }(std::make_integer_sequence<int, BlockKernel::most_rows>());
  return kernel;
}

}  // namespace
}  // namespace rlx::cpu
