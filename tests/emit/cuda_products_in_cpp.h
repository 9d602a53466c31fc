#pragma once
#include <string_view>

namespace rlx::test {

/// What src/backends/gpu/instructions/warp_products.h and warpgroup_products.h ask of a GPU, behind cuda_in_cpp: each lane has the
/// elements that NVIDIA's PTX manual says (warp-level matrix instructions, m16n8k16 and ldmatrix; asynchronous warpgroup instructions,
/// m64nNk16 and swizzled layouts). Copies are done when they are asked for.
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
  typedef float Sum;
  static float number(unsigned short bits) { return __int_as_float((int)((unsigned)bits << 16)); }
};
struct rlx_f16 {
  typedef float Sum;
  static float number(unsigned short bits) {
    const unsigned sign = (bits & 0x8000u) << 16, rest = bits & 0x7fffu;
    if (rest >= 0x7c00u) return __int_as_float((int)(sign | 0x7f800000u | (rest & 0x3ffu) << 13));
    const float size = rest < 0x400u ? rest * 0x1p-24f : __int_as_float((int)((rest << 13) + 0x38000000u));
    return sign ? -size : size;
  }
};
struct rlx_i8 {
  typedef int Sum;
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
rlx_inside float fake_added(float sum, rlx_bf16, unsigned short x, unsigned short y) {
  return fmaf(rlx_bf16::number(x), rlx_bf16::number(y), sum);
}
rlx_inside float fake_added(float sum, rlx_f16, unsigned short x, unsigned short y) {
  return fmaf(rlx_f16::number(x), rlx_f16::number(y), sum);
}
rlx_inside int fake_added(int sum, rlx_i8, unsigned short x, unsigned short y) {
  return sum + (signed char)(x & 255) * (signed char)(y & 255) + (signed char)(x >> 8) * (signed char)(y >> 8);
}
template <class Element>
rlx_inside void rlx_multiply(Element element, typename Element::Sum (&sum)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  const int warp = threadIdx.x / 32 * 32, lane = threadIdx.x % 32;
  const unsigned mine[6] = {a[0], a[1], a[2], a[3], b0, b1};
  memcpy(fake_factors[threadIdx.x], mine, sizeof mine);
  __syncwarp();
  for (int i = 0; i < 4; ++i)
    for (int k = 0; k < 16; ++k) {
      const unsigned x = fake_factors[warp + lane / 4 * 4 + k % 8 / 2][i / 2 + k / 8 * 2];
      const unsigned y = fake_factors[warp + (lane % 4 * 2 + i % 2) * 4 + k % 8 / 2][4 + k / 8];
      sum[i] = fake_added(sum[i], element, (unsigned short)(x >> k % 2 * 16), (unsigned short)(y >> k % 2 * 16));
    }
  __syncwarp();
}
#endif
#ifndef rlx_warpgroup_products
#define rlx_warpgroup_products
#define __grid_constant__
struct alignas(64) rlx_map {
  unsigned long long words[16];  // as the driver's stand-in makes them: address, 3 extents, 2 strides in bytes, 2 sides of a box
};
typedef unsigned long long rlx_barrier;
struct FakeBarrier {
  unsigned char phase, missing, arrivals;
  int bytes;
  void end_if_all() {
    if (missing == 0 && bytes == 0) phase ^= 1, missing = arrivals;
  }
};
rlx_inside FakeBarrier& fake_barrier(rlx_barrier* at) { return *(FakeBarrier*)at; }
rlx_inside unsigned rlx_on_chip_address(const void* at) { return (unsigned)(unsigned long)at; }
rlx_inside void rlx_begin_barrier(rlx_barrier* at, int arrivals) {
  fake_barrier(at) = {0, (unsigned char)arrivals, (unsigned char)arrivals, 0};
}
rlx_inside void rlx_begun_barriers() {}
rlx_inside void rlx_arrive_with(rlx_barrier* at, int bytes) {
  FakeBarrier& barrier = fake_barrier(at);
  barrier.bytes += bytes, --barrier.missing;
  barrier.end_if_all();
}
rlx_inside void rlx_arrive(rlx_barrier* at) { rlx_arrive_with(at, 0); }
rlx_inside void rlx_wait(rlx_barrier* at, int phase) {
  while (((volatile FakeBarrier*)at)->phase == phase) fake_launch->lanes->give_way();
}
// Rows of 128 bytes, of which the parts of 16 bytes are turned by the number of the row.
rlx_inside unsigned long fake_turned(unsigned long at) { return at ^ (at >> 7 & 7) << 4; }
rlx_inside void rlx_copy_box(void* to, const rlx_map& map, rlx_barrier* done, int x, int y, int z) {
  const unsigned long long* const w = map.words;
  for (unsigned j = 0; j < w[7]; ++j)
    for (unsigned i = 0; i < w[6]; ++i) {
      const bool inside = (unsigned)x + i < w[1] && (unsigned)y + j < w[2] && (unsigned)z < w[3];
      const char* const from = (const char*)(w[0] - address_offset) + z * w[5] + (y + j) * w[4] + (x + i) * 2ul;
      *(unsigned short*)fake_turned((unsigned long)to + j * 128 + i * 2) = inside ? *(const unsigned short*)from : 0;
    }
  FakeBarrier& barrier = fake_barrier(done);
  barrier.bytes -= (int)(2 * w[6] * w[7]);
  barrier.end_if_all();
}
template <int registers> rlx_inside void rlx_fewer_registers() {}
template <int registers> rlx_inside void rlx_more_registers() {}
rlx_inside unsigned long long rlx_matrix(const void* at, int) { return (unsigned long long)at; }
rlx_inside void rlx_begin_products() {}
rlx_inside void rlx_end_products() {}
static unsigned fake_group_arrived[8], fake_group_times[8];
// All four warps of a group.
template <int groups> rlx_inside void rlx_wait_products() {
  const unsigned group = threadIdx.x / 128, times = fake_group_times[group];
  if (++fake_group_arrived[group] == 128) return fake_group_arrived[group] = 0, (void)++fake_group_times[group];
  while (*(volatile unsigned*)&fake_group_times[group] == times) fake_launch->lanes->give_way();
}
// Element (row, k) of a matrix whose rows, or columns, lie side by side (across), or else the depth.
template <class Element> rlx_inside float fake_factor(unsigned long long matrix, bool across, int row, int k) {
  const unsigned long at = matrix + (across ? row / 64 * 8192 + k * 128 + row % 64 * 2 : row * 128 + k * 2);
  return Element::number(*(const unsigned short*)fake_turned(at));
}
template <int a_across, int b_across, class Element, int registers>
rlx_inside void rlx_multiply_group(Element, float (&sum)[registers], unsigned long long a, unsigned long long b, int add) {
  const int warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32;
  for (int i = 0; i < registers; ++i) {
    const int row = warp * 16 + i / 2 % 2 * 8 + lane / 4, column = i / 4 * 8 + lane % 4 * 2 + i % 2;
    if (!add) sum[i] = 0;
    for (int k = 0; k < 16; ++k) sum[i] = fmaf(fake_factor<Element>(a, a_across, row, k), fake_factor<Element>(b, b_across, column, k), sum[i]);
  }
}
#endif
)";

}  // namespace rlx::test
