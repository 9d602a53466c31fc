#pragma once
#include <string_view>

namespace rlx::gpu {

/// The same for f32, without matrix units: products and sums are those of f32.
inline constexpr std::string_view f32_tiles = R"(#ifndef rlx_f32_tiles
#define rlx_f32_tiles
// Exact products of f32 by 256 threads, of which each has a block of sums; panels go through registers, two of them on chip.
template <int rows, int columns, bool a_along, bool b_along> struct rlx_f32_tile {
  using Operand = rlx_operand<float>;
  static constexpr int depth = 8, high = rows / 16, wide = columns / 16, padded = 4;
  static constexpr int a_row = rows + padded, b_row = columns + padded, stage = depth * (a_row + b_row);

  template <int width, bool along> struct Panel {
    static constexpr int each = width * depth / 256;
    float held[each];
    rlx_inside int inner(int i) { return along ? (threadIdx.x + 256 * i) % depth : (threadIdx.x + 256 * i) / width; }
    rlx_inside int outer(int i) { return along ? (threadIdx.x + 256 * i) / depth : (threadIdx.x + 256 * i) % width; }
    __device__ __forceinline__ void load(const Operand& from, long long row, long long k) {
#pragma unroll
      for (int i = 0; i < each; ++i) {
        const long long r = row + outer(i), d = k + inner(i);
        held[i] = r < from.rows && d < from.depth ? from.at[along ? r * from.stride + d : d * from.stride + r] : 0.0f;
      }
    }
    __device__ __forceinline__ void store(float* to) const {
#pragma unroll
      for (int i = 0; i < each; ++i) to[inner(i) * (width + padded) + outer(i)] = held[i];
    }
  };
  rlx_inside const float* run(void* on_chip, const Operand& a, const Operand& b, long long row, long long column) {
    float* panels = (float*)on_chip;
    const int across = threadIdx.x % 16 * 4, down = threadIdx.x / 16 * 4;
    float sums[high][wide] = {};
    Panel<rows, a_along> left;
    Panel<columns, b_along> right;
    left.load(a, row, 0), right.load(b, column, 0);
    left.store(panels), right.store(panels + depth * a_row);
    __syncthreads();
    int side = 0;
    for (long long k = 0; k < a.depth; k += depth, side ^= 1) {
      const bool more = k + depth < a.depth;
      if (more) left.load(a, row, k + depth), right.load(b, column, k + depth);
      const float *x = panels + side * stage, *y = x + depth * a_row;
#pragma unroll
      for (int d = 0; d < depth; ++d) {
        alignas(16) float u[high], v[wide];
#pragma unroll
        for (int i = 0; i < high; i += 4) *(float4*)(u + i) = *(const float4*)(x + d * a_row + i / 4 * 64 + down);
#pragma unroll
        for (int j = 0; j < wide; j += 4) *(float4*)(v + j) = *(const float4*)(y + d * b_row + j / 4 * 64 + across);
#pragma unroll
        for (int i = 0; i < high; ++i)
#pragma unroll
          for (int j = 0; j < wide; ++j) sums[i][j] = fmaf(u[i], v[j], sums[i][j]);
      }
      float* next = panels + (side ^ 1) * stage;
      if (more) left.store(next), right.store(next + depth * a_row);
      __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < high; ++i)
#pragma unroll
      for (int j = 0; j < wide; ++j) panels[rlx_sum_place<columns>(i / 4 * 64 + down + i % 4, j / 4 * 64 + across + j % 4)] = sums[i][j];
    __syncthreads();
    return panels;
  }
};
#endif
)";

}  // namespace rlx::gpu
