#pragma once
#include <string_view>

namespace rlx::test {

/// What src/backends/gpu/instructions/kept_numbers.cpp asks of a GPU, behind cuda_products_in_cpp. A lane's factors are those of rows r and
/// r + 8 of the sixteen of its warp, four lanes a row.
inline constexpr std::string_view cuda_attention_in_cpp = R"(#ifndef rlx_kept_numbers
#define rlx_kept_numbers
static inline int min(int a, int b) { return a < b ? a : b; }
static inline int max(int a, int b) { return a > b ? a : b; }
rlx_inside void rlx_show_copies() {}
template <int n> rlx_inside void rlx_settle(float (&)[n]) {}
static inline unsigned short fake_narrow(rlx_bf16, float x) {
  const unsigned bits = __float_as_uint(x);
  return (unsigned short)(x != x ? bits >> 16 | 0x40u : (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}
static inline unsigned short fake_narrow(rlx_f16, float x) {
  const _Float16 narrow = (_Float16)x;
  unsigned short bits;
  memcpy(&bits, &narrow, 2);
  return bits;
}
template <class Element> rlx_inside unsigned rlx_two(Element, float a, float b) {
  return fake_narrow(Element(), a) | (unsigned)fake_narrow(Element(), b) << 16;
}
template <class Element, int registers>
rlx_inside void rlx_multiply_kept(Element, float (&sum)[registers], const unsigned* a, unsigned long long b) {
  const unsigned first = threadIdx.x % 32 / 4 * 4;
  float factors[2][16];
  for (unsigned lane = 0; lane < 4; ++lane)
    for (int i = 0; i < 4; ++i) {
      const unsigned two = fake_exchange(a[i], first + lane);
      for (int e = 0; e < 2; ++e)
        factors[i % 2][i / 2 * 8 + (int)lane * 2 + e] = Element::number((unsigned short)(e ? two >> 16 : two));
    }
  for (int i = 0; i < registers; ++i)
    for (int k = 0; k < 16; ++k)
      sum[i] = fmaf(factors[i / 2 % 2][k], fake_factor<Element>(b, true, i / 4 * 8 + (int)threadIdx.x % 4 * 2 + i % 2, k), sum[i]);
}
#endif
)";

}  // namespace rlx::test
