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

/// One step of one row: its codes, its scale, and the sums of its halves' codes.
struct PackedStep {
  explicit PackedStep(const float* x) {
    const __m512 low = _mm512_loadu_ps(x), high = _mm512_loadu_ps(x + 16);
    const __m512i magnitude = _mm512_set1_epi32(0x7fffffff);
    // Compared as integers, so that a NaN is larger than all numbers.
    const __m512i largest =
        _mm512_max_epi32(_mm512_and_si512(_mm512_castps_si512(low), magnitude), _mm512_and_si512(_mm512_castps_si512(high), magnitude));
    const float most = _mm_cvtss_f32(_mm_castsi128_ps(_mm_cvtsi32_si128(_mm512_reduce_max_epi32(largest))));
    scale = most / 127;
    const __m512 inverse = _mm512_set1_ps(most > 0 ? 127 / most : 0);
    const __m512i codes_low = _mm512_cvtps_epi32(_mm512_mul_ps(low, inverse)),
                  codes_high = _mm512_cvtps_epi32(_mm512_mul_ps(high, inverse));
    codes[0] = _mm512_cvtsepi32_epi8(codes_low), codes[1] = _mm512_cvtsepi32_epi8(codes_high);
    // Of the saturated codes: a NaN becomes the least i32, which would overflow.
    sums[0] = _mm512_reduce_add_epi32(_mm512_cvtepi8_epi32(codes[0])), sums[1] = _mm512_reduce_add_epi32(_mm512_cvtepi8_epi32(codes[1]));
  }
  __m128i codes[2];
  float scale;
  std::int32_t sums[2];
};

inline void pack_rows_vnni(const RowFormat& format, const float* x, std::int64_t x_stride, int rows, std::int64_t k, std::byte* tile) {
  const auto write = [](std::byte* to, auto value) { __builtin_memcpy(to, &value, sizeof value); };
  const std::int64_t step_bytes = rows * format.row_bytes();
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t s = 0; s < k / RowFormat::step; ++s) {
      const PackedStep packed(x + r * x_stride + s * RowFormat::step);
      std::byte* const to = tile + s * step_bytes;
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to + r * RowFormat::step), packed.codes[0]);
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to + r * RowFormat::step + 16), packed.codes[1]);
      std::byte* const scales = to + rows * RowFormat::step;
      write(scales + 4 * r, packed.scale);
      std::byte* const starts = scales + std::int64_t{4} * rows;
      std::byte* const sums = starts + (format.offset != 0 ? std::int64_t{4} * rows * format.halves : 0);
      for (int half = 0; half < format.halves; ++half) {
        const std::int32_t sum = format.halves == 1 ? packed.sums[0] + packed.sums[1] : packed.sums[half];
        if (format.offset != 0) write(starts + 4 * (half * rows + r), -format.offset * sum);
        if (format.minima) write(sums + 4 * (half * rows + r), packed.scale * static_cast<float>(sum));
      }
    }
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
