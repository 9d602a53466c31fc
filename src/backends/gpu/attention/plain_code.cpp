// Attention by products of f32, for any types: online softmax (Milakov & Gimelshein 2018; Dao et al. 2022) over tiles of keys on chip.
#include <algorithm>

#include "backends/gpu/attention/kernels.h"

namespace rlx::gpu {
namespace {

// Lane t multiplies two rows, 2 * (t / 8) and the next, with each eighth key, or each eighth run of four features of values. For the
// softmax four lanes share row t / 4.
constexpr std::string_view plain_loops = R"(
constexpr int row_lanes = 8, run = 4;
constexpr int depth = (features + 3) / 4 * 4, depth_stride = depth + 4, width = (values + 31) / 32 * 32;
constexpr int keys_of_lane = tile_keys / row_lanes, runs = width / (row_lanes * run), weight_stride = tile_keys + 1;

struct OnChip {
  float q[tile_rows * depth_stride];
  float kv[tile_keys * (depth_stride > width ? depth_stride : width)];  // keys, then values
  float weights[tile_rows * weight_stride], most[lanes], factor[tile_rows];
  int first[tile_rows], last[tile_rows];
};

template <class T, class Scale>
__device__ void load_tile(float* to, int stride, int padded, int count, const Rows<T>& rows, const Rows<Scale>& scales, int shift,
                          long long head, long long begin, long long end) {
  for (int i = threadIdx.x; i < tile_keys * padded; i += lanes) {
    const int row = i / padded, column = i % padded;
    float x = 0;
    if (column < count && begin + row < end) {
      x = widened(rows.at(head, begin + row)[column]);
      if (scales.data) x *= widened(scales.at(head, begin + row)[column >> shift]);
    }
    to[row * stride + column] = x;
  }
}

/// The range of keys that some row sees, as far as positions and window go.
__device__ void find_range(const Problem& p, OnChip& on_chip, long long& begin, long long& end) {
  find_visible(p, on_chip.first, on_chip.last);
  __syncthreads();
  begin = p.keys, end = 0;
  for (int r = 0; r < tile_rows; ++r) {
    if (on_chip.first[r] > on_chip.last[r]) continue;
    if (on_chip.first[r] < begin) begin = on_chip.first[r];
    if (on_chip.last[r] + 1 > end) end = on_chip.last[r] + 1;
  }
  begin = begin / tile_keys * tile_keys;
}

/// The scores of the tile that begins at a key, in the place of the weights.
__device__ void find_scores(const Problem& p, OnChip& on_chip, long long begin) {
  const int column = threadIdx.x % row_lanes, row = threadIdx.x / row_lanes * 2;
  float s[2][keys_of_lane] = {};
  for (int d = 0; d < depth; d += 4) {
    const float* const q = on_chip.q + row * depth_stride + d;
    for (int j = 0; j < keys_of_lane; ++j) {
      const float* const k = on_chip.kv + (column + row_lanes * j) * depth_stride + d;
      for (int i = 0; i < 4; ++i) {
        s[0][j] = fmaf(q[i], k[i], s[0][j]);
        s[1][j] = fmaf(q[depth_stride + i], k[i], s[1][j]);
      }
    }
  }
  for (int h = 0; h < 2; ++h)
    for (int j = 0; j < keys_of_lane; ++j) {
      const long long r = p.first_row + row + h, key = begin + column + row_lanes * j;
      const bool sees = on_chip.first[row + h] <= key && key <= on_chip.last[row + h];
      on_chip.weights[(row + h) * weight_stride + column + row_lanes * j] =
          sees ? score(p, s[h][j], p.kv_head * p.share + r % p.share, r / p.share, key) : -INFINITY;
    }
}

/// Scores become weights. `most` and `sum` are of the row that the lane shares; the sum is of its quarter.
__device__ void weigh(OnChip& on_chip, float& most, float& sum) {
  const int row = threadIdx.x / 4;
  float* const mine = on_chip.weights + row * weight_stride + threadIdx.x % 4;
  float highest = most;
  for (int j = 0; j < tile_keys; j += 4) highest = fmaxf(highest, mine[j]);
  on_chip.most[threadIdx.x] = highest;
  __syncthreads();
  for (int i = 0; i < 4; ++i) highest = fmaxf(highest, on_chip.most[row * 4 + i]);
  const float base = highest == -INFINITY ? 0 : highest, factor = expf(most - base);
  sum *= factor, most = highest;
  for (int j = 0; j < tile_keys; j += 4) {
    mine[j] = expf(mine[j] - base);
    sum += mine[j];
  }
  if (threadIdx.x % 4 == 0) on_chip.factor[row] = factor;
}

__device__ void add_values(const OnChip& on_chip, float (&o)[2][runs][run]) {
  const int column = threadIdx.x % row_lanes * run, row = threadIdx.x / row_lanes * 2;
  for (int h = 0; h < 2; ++h)
    for (int c = 0; c < runs; ++c)
      for (int i = 0; i < run; ++i) o[h][c][i] *= on_chip.factor[row + h];
  for (int key = 0; key < tile_keys; ++key) {
    const float weights[2] = {on_chip.weights[row * weight_stride + key], on_chip.weights[(row + 1) * weight_stride + key]};
#pragma unroll
    for (int c = 0; c < runs; ++c) {
      const float* const v = on_chip.kv + key * width + column + c * row_lanes * run;
      for (int i = 0; i < run; ++i) {
        o[0][c][i] = fmaf(weights[0], v[i], o[0][c][i]);
        o[1][c][i] = fmaf(weights[1], v[i], o[1][c][i]);
      }
    }
  }
}

__device__ void store(const Problem& p, OnChip& on_chip, const float (&o)[2][runs][run], float most, float sum) {
  __syncthreads();
  on_chip.most[threadIdx.x] = sum;
  if (threadIdx.x % 4 == 0) on_chip.factor[threadIdx.x / 4] = most;
  __syncthreads();
  const int column = threadIdx.x % row_lanes * run, row = threadIdx.x / row_lanes * 2;
  for (int h = 0; h < 2; ++h) {
    const long long r = p.first_row + row + h;
    if (r >= p.queries * p.share) continue;
    const float* const parts = on_chip.most + (row + h) * 4;
    const float total = parts[0] + parts[1] + parts[2] + parts[3];
    Out* const to = p.out.at(p.kv_head * p.share + r % p.share, r / p.share);
    float* const part = splits > 0 ? p.parts + (r * splits + p.split) * (values + 2) : 0;
    if (splits > 0 && column == 0) part[values] = on_chip.factor[row + h], part[values + 1] = total;
    for (int c = 0; c < runs; ++c)
      for (int i = 0; i < run; ++i) {
        const int d = column + c * row_lanes * run + i;
        if (splits > 0 && d < values) part[d] = o[h][c][i];
        else if (d < values) to[d * p.out.column] = narrowed(total == 0 ? 0 : o[h][c][i] / total, (Out*)0);
      }
  }
}

__device__ void attend(const Problem& p) {
  extern __shared__ float memory[];
  OnChip& on_chip = *(OnChip*)memory;
  for (int i = threadIdx.x; i < tile_rows * depth; i += lanes) {
    const long long r = p.first_row + i / depth;
    const int d = i % depth;
    const bool there = d < features && r < p.queries * p.share;
    on_chip.q[i / depth * depth_stride + d] =
        there ? widened(p.q.at(p.kv_head * p.share + r % p.share, r / p.share)[d * p.q.column]) : 0;
  }
  long long begin, end;
  find_range(p, on_chip, begin, end);
  if constexpr (splits > 0) {
    const long long all = end > begin ? end - begin : 0, each = (all + splits * tile_keys - 1) / (splits * tile_keys) * tile_keys;
    begin += p.split * each;
    if (begin + each < end) end = begin + each;
  }
  float o[2][runs][run] = {}, most = -INFINITY, sum = 0;
  for (; begin < end; begin += tile_keys) {
    load_tile(on_chip.kv, depth_stride, depth, features, p.k, p.k_scales, k_shift, p.kv_head, begin, p.keys);
    __syncthreads();
    find_scores(p, on_chip, begin);
    __syncthreads();
    load_tile(on_chip.kv, width, width, values, p.v, p.v_scales, v_shift, p.kv_head, begin, p.keys);
    weigh(on_chip, most, sum);
    __syncthreads();
    add_values(on_chip, o);
    __syncthreads();
  }
  store(p, on_chip, o, most, sum);
}
)";

}  // namespace

AttentionCode plain_attention(const AttentionViews& attention) {
  constexpr int lanes = 128, rows = 32;
  const auto features = static_cast<int>(attention.head_size.value()), values = static_cast<int>(attention.value_size.value());
  const int keys = std::max(features, values) <= 128 ? 32 : 16;
  const int stride = (features + 3) / 4 * 4 + 4, width = (values + 31) / 32 * 32;
  const int numbers = rows * stride + keys * std::max(stride, width) + rows * (keys + 1) + lanes + rows;
  return {{}, std::string(plain_loops), rows, keys, lanes, 4 * numbers + 2 * rows * 4};
}

}  // namespace rlx::gpu
