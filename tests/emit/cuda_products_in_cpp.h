#pragma once
#include <string_view>

namespace rlx::test {

/// What src/backends/gpu/products/warp_products.h asks of a GPU, behind cuda_in_cpp: each lane of a warp has the elements that NVIDIA's PTX
/// manual says (warp-level matrix instructions, m16n8k16 and ldmatrix).
inline constexpr std::string_view cuda_products_in_cpp = R"(#ifndef rlx_warp_products
#define rlx_warp_products
#define rlx_inside static inline
rlx_inside void rlx_copy_16(void* to, const void* from, int bytes) {
  __builtin_memset(to, 0, 16);
  memcpy(to, from, (unsigned long)bytes);
}
rlx_inside void rlx_end_group() {}
template <int groups> rlx_inside void rlx_wait_groups() {}
struct rlx_bf16 {
  static float number(unsigned short bits) { return __int_as_float((int)((unsigned)bits << 16)); }
};
struct rlx_f16 {
  static float number(unsigned short bits) {
    const unsigned sign = (bits & 0x8000u) << 16, rest = bits & 0x7fffu;
    if (rest >= 0x7c00u) return __int_as_float((int)(sign | 0x7f800000u | (rest & 0x3ffu) << 13));
    const float size = rest < 0x400u ? rest * 0x1p-24f : __int_as_float((int)((rest << 13) + 0x38000000u));
    return sign ? -size : size;
  }
};
static const unsigned short* fake_rows[1024];
static unsigned fake_factors[1024][6];
template <bool transposed> rlx_inside void fake_load(unsigned (&to)[4], const void* row) {
  const int warp = threadIdx.x / 32 * 32, lane = threadIdx.x % 32;
  fake_rows[threadIdx.x] = (const unsigned short*)row;
  __syncwarp();
  for (int i = 0; i < 4; ++i) {
    const unsigned short** const rows = fake_rows + warp + 8 * i;
    unsigned short pair[2];
    for (int e = 0; e < 2; ++e) pair[e] = transposed ? rows[lane % 4 * 2 + e][lane / 4] : rows[lane / 4][lane % 4 * 2 + e];
    to[i] = pair[0] | (unsigned)pair[1] << 16;
  }
  __syncwarp();
}
rlx_inside void rlx_load_matrices(unsigned (&to)[4], const void* row) { fake_load<false>(to, row); }
rlx_inside void rlx_load_transposed(unsigned (&to)[4], const void* row) { fake_load<true>(to, row); }
template <class Element> rlx_inside void rlx_multiply(Element, float (&sum)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  const int warp = threadIdx.x / 32 * 32, lane = threadIdx.x % 32;
  const unsigned mine[6] = {a[0], a[1], a[2], a[3], b0, b1};
  memcpy(fake_factors[threadIdx.x], mine, sizeof mine);
  __syncwarp();
  const auto number = [](unsigned pair, int k) { return Element::number((unsigned short)(pair >> k % 2 * 16)); };
  for (int i = 0; i < 4; ++i)
    for (int k = 0; k < 16; ++k) {
      const unsigned x = fake_factors[warp + lane / 4 * 4 + k % 8 / 2][i / 2 + k / 8 * 2];
      const unsigned y = fake_factors[warp + (lane % 4 * 2 + i % 2) * 4 + k % 8 / 2][4 + k / 8];
      sum[i] = fmaf(number(x, k), number(y, k), sum[i]);
    }
  __syncwarp();
}
#endif
)";

}  // namespace rlx::test
