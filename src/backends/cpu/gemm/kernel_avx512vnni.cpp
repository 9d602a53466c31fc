#include <immintrin.h>

#include "backends/cpu/gemm/tables.h"
#include "backends/cpu/gemm/tile.h"
#include "backends/cpu/gemm/turned_rows.h"

namespace rlx::cpu {
namespace {

/// Four steps of depth in one instruction, which takes the left side unsigned.
struct Quads {
  using Element = std::int8_t;
  using Vector = __m512i;
  static constexpr int lanes = 16, panel_vectors = 2, max_rows = 14;
  static constexpr bool raised = true;

  static Vector raise(Vector units) { return _mm512_xor_si512(units, _mm512_set1_epi8(-128)); }
  static Vector zero() { return _mm512_setzero_si512(); }
  static Vector load(const std::int32_t* from) { return _mm512_loadu_si512(from); }
  static void store(std::int32_t* to, Vector value) { _mm512_storeu_si512(to, value); }
  static __mmask16 mask(std::int64_t count) { return first_lanes<__mmask16>(count, lanes); }
  static Vector load(const std::int32_t* from, __mmask16 mask) { return _mm512_maskz_loadu_epi32(mask, from); }
  static void store(std::int32_t* to, Vector value, __mmask16 mask) { _mm512_mask_storeu_epi32(to, mask, value); }
  static Vector load_units(const std::uint32_t* from) { return _mm512_loadu_si512(from); }
  static Vector broadcast(const std::uint32_t* from) { return _mm512_set1_epi32(static_cast<int>(*from)); }
  static Vector multiply_add(Vector a, Vector b, Vector sum) { return _mm512_dpbusd_epi32(sum, a, b); }
};

/// The sums of the lanes of each of four rows.
__m128i sums_of_rows(const __m512i* rows) {
  const FourSteps turned = turn_rows(rows);
  const __m512i sums =
      _mm512_add_epi32(_mm512_add_epi32(turned.steps[0], turned.steps[1]), _mm512_add_epi32(turned.steps[2], turned.steps[3]));
  const __m256i halves = _mm256_add_epi32(_mm512_castsi512_si256(sums), _mm512_extracti64x4_epi64(sums, 1));
  return _mm_add_epi32(_mm256_castsi256_si128(halves), _mm256_extracti128_si256(halves, 1));
}

/// MicroKernel::FewColumns for one column. Integers are summed in any order: only the sums are turned round where rows are so long that
/// those are few.
void multiply_column(std::int64_t depth, const std::int8_t* a, std::int64_t stride, std::int64_t rows, const std::uint32_t* b,
                     const std::int32_t* start, std::int32_t* c, std::int64_t c_stride) {
  constexpr std::int64_t least = 128, most = 8192, line = 64, group = 4, panel_cols = 32;
  if (depth < least || depth > most) return multiply_few_columns_of<Quads, 1>(depth, a, stride, rows, b, start, c, c_stride);
  alignas(line) std::uint32_t column[most / group];
  const std::int64_t units = units_of<std::int8_t>(depth), lines = (depth + line - 1) / line;
  for (std::int64_t unit = 0; unit < lines * Quads::lanes; ++unit) column[unit] = unit < units ? b[unit * panel_cols] : 0;
  for (std::int64_t next = 0; next < rows; next += group) {
    const std::int64_t row = next + group < rows ? next : rows - group;  // the last rows may be those before again
    __m512i sums[group] = {};
    const auto add = [&](std::int64_t at, __mmask64 mask) {
      const __m512i right = _mm512_load_si512(column + at / group);
#pragma GCC unroll 4
      for (int r = 0; r < group; ++r)
        sums[r] = Quads::multiply_add(Quads::raise(_mm512_maskz_loadu_epi8(mask, a + (row + r) * stride + at)), right, sums[r]);
    };
    const std::int64_t whole = depth / line * line;
    for (std::int64_t at = 0; at < whole; at += line) add(at, ~__mmask64{0});
    if (whole < depth) add(whole, (__mmask64{1} << (depth - whole)) - 1);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(c + row), _mm_add_epi32(sums_of_rows(sums), _mm_set1_epi32(*start)));
  }
}

consteval MicroKernel<std::int8_t> make_kernel() {
  MicroKernel<std::int8_t> kernel = with_few_columns<Quads>(make_micro_kernel<Quads>());
  kernel.few_columns[1] = multiply_column;
  return kernel;
}

}  // namespace

constexpr MicroKernel<std::int8_t> avx512_vnni = make_kernel();

}  // namespace rlx::cpu
