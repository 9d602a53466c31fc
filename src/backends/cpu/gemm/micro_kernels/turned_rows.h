#pragma once
#include <immintrin.h>

#include <cstddef>
#include <cstdint>
#include <utility>

#include "backends/cpu/gemm/micro_kernels/micro_kernel.h"

// Products with few columns for AVX-512: lanes are 16 rows of A, which are read where they lie and turned round in registers. Every element
// is summed up in the order of MicroKernel.

namespace rlx::cpu {

/// Four units of each of 16 rows.
struct FourSteps {
  __m512i steps[4];  // (16 rows) each
};

/// Turns rows j, j + 4, j + 8 and j + 12 of four units each, for j of 0..3, round.
[[gnu::always_inline]] inline FourSteps turn_rows(const __m512i* rows) {
  const __m512i ab_low = _mm512_unpacklo_epi32(rows[0], rows[1]), ab_high = _mm512_unpackhi_epi32(rows[0], rows[1]);
  const __m512i cd_low = _mm512_unpacklo_epi32(rows[2], rows[3]), cd_high = _mm512_unpackhi_epi32(rows[2], rows[3]);
  return {{_mm512_unpacklo_epi64(ab_low, cd_low), _mm512_unpackhi_epi64(ab_low, cd_low), _mm512_unpacklo_epi64(ab_high, cd_high),
           _mm512_unpackhi_epi64(ab_high, cd_high)}};
}

/// The next four units of 16 rows, `load` (of 128 bits) of each.
template <class Load>
[[gnu::always_inline]] inline FourSteps load_steps(const std::byte* const* quarters, std::int64_t at, std::int64_t stride,
                                                   const Load& load) {
  __m512i rows[4];
#pragma GCC unroll 4
  for (int j = 0; j < 4; ++j) {
    rows[j] = _mm512_castsi128_si512(load(quarters[0] + at + j * stride));
    rows[j] = _mm512_inserti32x4(rows[j], load(quarters[1] + at + j * stride), 1);
    rows[j] = _mm512_inserti32x4(rows[j], load(quarters[2] + at + j * stride), 2);
    rows[j] = _mm512_inserti32x4(rows[j], load(quarters[3] + at + j * stride), 3);
  }
  return turn_rows(rows);
}

/// C (16 rows of each of `cols` columns); see MicroKernel::FewColumns.
template <class Simd, int cols>
[[gnu::always_inline]] inline void multiply_turned(std::int64_t bytes, const std::byte* a, std::int64_t stride,
                                                   const Packed<typename Simd::Element>* b,
                                                   [[maybe_unused]] const Sum<typename Simd::Element>* start,
                                                   Sum<typename Simd::Element>* c, std::int64_t c_stride) {
  using Vector = typename Simd::Vector;
  using Operand = decltype(Simd::broadcast(b));
  constexpr std::int64_t panel_cols = Simd::panel_vectors * Simd::lanes, unit_bytes = 4, quad_bytes = 16;
  const std::byte* const quarters[] = {a, a + 4 * stride, a + 8 * stride, a + 12 * stride};
  Vector sums[cols];
#pragma GCC unroll 16
  for (int col = 0; col < cols; ++col) {
    if constexpr (requires { Simd::raised; }) sums[col] = _mm512_set1_epi32(start[col]);
    else sums[col] = Simd::zero();
  }
  const auto add_step = [&](__m512i step) __attribute__((always_inline)) {
    Operand left = reinterpret_cast<Operand>(step);
    if constexpr (requires { Simd::raised; }) left = Simd::raise(left);
#pragma GCC unroll 16
    for (int col = 0; col < cols; ++col) sums[col] = Simd::multiply_add(left, Simd::broadcast(b + col), sums[col]);
    b += panel_cols;
  };
  std::int64_t at = 0;
  for (; at + quad_bytes <= bytes; at += quad_bytes) {
    const auto load = [](const std::byte* from) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from)); };
    const FourSteps four = load_steps(quarters, at, stride, load);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) add_step(four.steps[i]);
  }
  if (at < bytes) {
    const auto mask = static_cast<__mmask16>((1U << (bytes - at)) - 1);
    const FourSteps four = load_steps(quarters, at, stride, [mask](const std::byte* from) { return _mm_maskz_loadu_epi8(mask, from); });
    for (int i = 0; at < bytes; at += unit_bytes) add_step(four.steps[i++]);
  }
#pragma GCC unroll 16
  for (int col = 0; col < cols; ++col) Simd::store(c + col * c_stride, sums[col]);
}

template <class Simd, int cols>
void multiply_few_columns_of(std::int64_t depth, const Left<typename Simd::Element>* a, std::int64_t stride, std::int64_t rows,
                             const Packed<typename Simd::Element>* b, const Sum<typename Simd::Element>* start,
                             Sum<typename Simd::Element>* c, std::int64_t c_stride) {
  const auto bytes_of = [](std::int64_t elements) { return elements * static_cast<std::int64_t>(sizeof(*a)); };
  for (std::int64_t next = 0; next < rows; next += Simd::lanes) {
    const std::int64_t row = next + Simd::lanes < rows ? next : rows - Simd::lanes;  // the last rows may be those before again
    multiply_turned<Simd, cols>(bytes_of(depth), reinterpret_cast<const std::byte*>(a + row * stride), bytes_of(stride), b, start, c + row,
                                c_stride);
  }
}

template <class Simd>
consteval MicroKernel<typename Simd::Element> with_few_columns(MicroKernel<typename Simd::Element> kernel) {
  [&]<int... index>(std::integer_sequence<int, index...>) {
    ((kernel.few_columns[index + 1] = multiply_few_columns_of<Simd, index + 1>), ...);
  }(std::make_integer_sequence<int, MicroKernel<typename Simd::Element>::most_few_columns>());
  return kernel;
}

}  // namespace rlx::cpu
