#pragma once
#include <string_view>

namespace rlx::gpu {

/// A tile of a product with weights in blocks by the matrix units of a block of 256 threads. Behind the texts of matrix_tiles.h.
inline constexpr std::string_view block_tiles = R"(#ifndef rlx_block_tiles
#define rlx_block_tiles
// Matrices in blocks: `rows` rows of `bytes` bytes that lie `stride` bytes apart.
struct rlx_blocks {
  const unsigned char* at;
  long long stride, rows, bytes;
};
// Bytes come on chip as they are. What of them is multiplied next becomes numbers there, each the sum of two of bf16, and so is each number
// on the left, or is one (`pieces`): what both leave out is 2^-16 of a product. `values` of a block lie in `block_bytes`.
template <int rows, int columns, int stages, int slices, int pieces, int values, int block_bytes> struct rlx_block_tile {
  using Tile = rlx_tile<rlx_bf16, rows, columns, true, true, stages, slices>;
  using A = typename Tile::A;
  using B = typename Tile::B;
  using Operand = rlx_operand<unsigned short>;
  static constexpr int depth = Tile::depth, high = Tile::high, wide = Tile::wide, run = 16;
  // Of bytes: the depth that is copied at a time, in how many steps it is multiplied, and how many such are on chip. A row begins where 16
  // bytes do, and an odd number of these lies between two, so that rows lie in different banks.
  static constexpr int span = values > depth ? values : depth, bytes = span / values * block_bytes, turn = span / depth;
  static constexpr int chunks = (bytes + 30) / 16, raw_row = (chunks | 1) * 16, raw_stages = (stages + turn - 2) / turn + 1;
  static constexpr int a_piece = rows * depth, b_piece = columns * depth, raw = columns * raw_row;
  static constexpr int panels = 2 * (stages * pieces * a_piece + 2 * b_piece);

  rlx_inside int past_bound(const unsigned char* at) { return (int)((unsigned long long)at % 16); }
  rlx_inside void load_bytes(unsigned char* to, const rlx_blocks& w, long long column, int part) {
    for (unsigned i = threadIdx.x; i < columns * chunks; i += 256) {
      const unsigned c = i / chunks, chunk = i % chunks;
      const unsigned char* const row = w.at + (column + c < w.rows ? column + c : w.rows - 1) * w.stride;
      const int first = part * bytes, from = first - past_bound(row + first) + (int)chunk * 16, left = (int)w.bytes - from;
      rlx_copy_16(to + c * raw_row + chunk * 16, row + from, left < 0 ? 0 : left < 16 ? left : 16);
    }
  }
  // What this thread copies of the left at each step, 8 numbers at a time. Rows behind the last one are that one, and nobody stores them.
  static constexpr int parts = depth / 8, copies = rows * parts / 256;
  rlx_inside void find_left(const unsigned short* (&from)[copies], const Operand& a, long long row) {
#pragma unroll
    for (int i = 0; i < copies; ++i) {
      const long long r = row + (threadIdx.x + 256 * i) / parts;
      from[i] = a.at + (r < a.rows ? r : a.rows - 1) * a.stride + threadIdx.x % parts * 8;
    }
  }
  rlx_inside void load(unsigned char* on_chip, const unsigned short* const (&from)[copies], long long distance, const rlx_blocks& w,
                       int k_end, long long column, int step) {
    const int k = step * depth;
    if (k < k_end) {
      unsigned short* const to = (unsigned short*)on_chip + step % stages * pieces * a_piece;
      const int there = k + (int)(threadIdx.x % parts) * 8 < k_end ? 16 : 0;
#pragma unroll
      for (int i = 0; i < copies; ++i)
#pragma unroll
        for (int piece = 0; piece < pieces; ++piece)
          rlx_copy_16(to + piece * a_piece + A::place((threadIdx.x + 256 * i) / parts, threadIdx.x % parts),
                      from[i] + piece * distance + k, there);
      if (step % turn == 0) load_bytes(on_chip + panels + step / turn % raw_stages * raw, w, column, step / turn);
    }
    rlx_end_group();
  }
  // 8 neighbouring columns of a run by 8 lanes. Finite numbers become finite ones.
  template <class Decode>
  rlx_inside void decode(unsigned short* to, const unsigned char* from, const rlx_blocks& w, long long column, int step,
                         const Decode& values_of) {
    for (unsigned i = threadIdx.x; i < columns * (depth / run); i += 256) {
      const unsigned c = i % 8 + i / 8 / (depth / run) * 8, r = i / 8 % (depth / run), first = (unsigned)step % turn * depth + r * run;
      const unsigned char* const row = w.at + (column + c < w.rows ? column + c : w.rows - 1) * w.stride;
      const unsigned char* const block = from + c * raw_row + past_bound(row + step / turn * bytes) + first / values * block_bytes;
      float x[run];
      values_of(block, first % values / run, x);
      alignas(16) unsigned two[2][run / 2];
#pragma unroll
      for (int j = 0; j < run / 2; ++j) {
        const unsigned upper = two[0][j] = rlx_two(rlx_bf16(), x[2 * j], x[2 * j + 1]);
        two[1][j] = rlx_two(rlx_bf16(), x[2 * j] - __int_as_float((int)(upper << 16)),
                            x[2 * j + 1] - __int_as_float((int)(upper & 0xffff0000u)));
      }
#pragma unroll
      for (int piece = 0; piece < 2; ++piece)
#pragma unroll
        for (int part = 0; part < 2; ++part)
          *(uint4*)(to + piece * b_piece + B::place(c, r * 2 + part)) = *(const uint4*)(two[piece] + part * 4);
    }
  }
  rlx_inside void multiply(float (&sums)[high / 16][wide / 8][4], const unsigned short* left, const unsigned short* right) {
    const int warp = threadIdx.x / 32, slice = slices > 1 ? warp : 0;
    const int high_at = slices > 1 ? 0 : warp / 4 * high, wide_at = slices > 1 ? 0 : warp % 4 * wide;
#pragma unroll
    for (int k = 16 * slice; k < depth; k += 16 * slices) {
      unsigned x[pieces][high / 16][4], y[2][wide / 16][4];
#pragma unroll
      for (int piece = 0; piece < pieces; ++piece)
#pragma unroll
        for (int i = 0; i < high / 16; ++i) A::template fragments<true>(x[piece][i], left + piece * a_piece, high_at + 16 * i, k);
#pragma unroll
      for (int piece = 0; piece < 2; ++piece)
#pragma unroll
        for (int j = 0; j < wide / 16; ++j) B::template fragments<false>(y[piece][j], right + piece * b_piece, wide_at + 16 * j, k);
#pragma unroll
      for (int of = pieces == 2 ? 2 : 1; of >= 0; --of)  // the small ones first
#pragma unroll
        for (int i = 0; i < high / 16; ++i)
#pragma unroll
          for (int j = 0; j < wide / 8; ++j) {
            const unsigned* const b = y[of % 2][j / 2] + j % 2 * 2;
            rlx_multiply(rlx_bf16(), sums[i][j], x[of / 2][i], b[0], b[1]);
          }
    }
  }
  // `distance`: from the first piece of a number on the left to the second.
  template <class Decode>
  rlx_inside const float* run_tile(void* memory, const Operand& a, long long distance, const rlx_blocks& w, long long row, long long column,
                                   const Decode& values_of) {
    unsigned char* const on_chip = (unsigned char*)memory;
    unsigned short* const right = (unsigned short*)on_chip + stages * pieces * a_piece;
    const unsigned short* left[copies];
    find_left(left, a, row);
    const int k_end = (int)a.depth;
    float sums[high / 16][wide / 8][4] = {};
    for (int step = 0; step < stages - 1; ++step) load(on_chip, left, distance, w, k_end, column, step);
    for (int step = 0; step * depth < k_end; ++step) {
      rlx_wait_groups<stages - 2>();
      __syncthreads();
      load(on_chip, left, distance, w, k_end, column, step + stages - 1);
      decode(right, on_chip + panels + step / turn % raw_stages * raw, w, column, step, values_of);
      __syncthreads();
      multiply(sums, (const unsigned short*)on_chip + step % stages * pieces * a_piece, right);
    }
    rlx_wait_groups<0>();
    Tile::keep(memory, sums);
    return (const float*)memory;
  }
};
#endif
)";

}  // namespace rlx::gpu
