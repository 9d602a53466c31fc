// Attention of few rows and many keys of 16 bits, as where single tokens follow a long text: groups share the keys of a head, and what each
// found is put together by a kernel behind (Dao et al. 2023, Flash-Decoding). Every number of the keys goes from memory to registers once.
#include <fmt/format.h>

#include "backends/gpu/attention/kernels.h"
#include "backends/gpu/instructions/kept_numbers.h"

namespace rlx::gpu {
namespace {

// Each warp takes 16 keys at a time. Products take features and keys in any order that both factors have: lane 4 g + q has features
// 8 q..8 q + 7 of each 32 of keys g and g + 8, features 8 g..8 g + 7 of each 64 of the values of keys 2 q, 2 q + 1, and these plus 8.
// Numbers of f32 are sums of parts of 16 bits.
constexpr std::string_view split_loops = R"(
constexpr int warps = lanes / 32, step = 16, pieces = sizeof(Q) == 2 ? 1 : element_is_f16 ? 2 : 3;
constexpr int key_runs = features / 32, value_runs = values / 64, part_numbers = values + 2;
constexpr float log2_e = 1.44269504f;

struct OnChip {
  unsigned q[key_runs][2][pieces][32][4];
  int first[tile_rows], last[tile_rows];
  float parts[warps][tile_rows][part_numbers];
};

/// Two numbers as sums of pieces.
rlx_inside void cut(float a, float b, unsigned (&to)[pieces]) {
#pragma unroll
  for (int i = 0; i < pieces; ++i) {
    to[i] = rlx_two(Element(), a, b);
    a -= widened(K{(unsigned short)to[i]}), b -= widened(K{(unsigned short)(to[i] >> 16)});
  }
}

/// The factors of all lanes, by the first warp. Returns by what the scores of a lane's rows are to be multiplied.
rlx_inside void load_queries(const Problem& p, OnChip& on_chip) {
  const int lane = threadIdx.x % 32;
  for (int i = threadIdx.x / 32; i < key_runs * 2 * 4; i += warps) {
    const int run = i / 8, half = i / 4 % 2, place = i % 4;
    const long long row = lane / 4 + place % 2 * 8;
    const int feature = 32 * run + lane % 4 * 8 + half * 4 + place / 2 * 2;
    float x[2] = {0, 0};
    if (row < p.queries * p.share)
      for (int e = 0; e < 2; ++e)
        x[e] = widened(p.q.at(p.kv_head * p.share + row % p.share, row / p.share)[(feature + e) * p.q.column]);
    unsigned two[pieces];
    cut(x[0], x[1], two);
    for (int piece = 0; piece < pieces; ++piece) on_chip.q[run][half][piece][lane][place] = two[piece];
  }
}

rlx_inside void load_keys(uint4 (&k)[2][key_runs], const Problem& p, long long first, long long end) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const long long key = first + 8 * half + threadIdx.x % 32 / 4;
    const K* const from = p.k.at(p.kv_head, key < end ? key : end - 1) + threadIdx.x % 4 * 8;
#pragma unroll
    for (int t = 0; t < key_runs; ++t) k[half][t] = *(const uint4*)(from + 32 * t);
  }
}
rlx_inside void load_values(uint4 (&v)[value_runs][4], const Problem& p, long long first, long long end) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const long long key = first + threadIdx.x % 4 * 2 + i % 2 + i / 2 * 8;
    const V* const from = p.v.at(p.kv_head, key < end ? key : end - 1) + threadIdx.x % 32 / 4 * 8;
#pragma unroll
    for (int t = 0; t < value_runs; ++t) v[t][i] = *(const uint4*)(from + 64 * t);
  }
}

rlx_inside void multiply_keys(float (&s)[2][4], const OnChip& on_chip, const uint4 (&k)[2][key_runs]) {
#pragma unroll
  for (int t = 0; t < key_runs; ++t)
#pragma unroll
    for (int piece = 0; piece < pieces; ++piece)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const uint4 q = *(const uint4*)on_chip.q[t][half][piece][threadIdx.x % 32];
        const unsigned factors[4] = {q.x, q.y, q.z, q.w};
#pragma unroll
        for (int i = 0; i < 2; ++i)
          rlx_multiply(Element(), s[i], factors, half ? k[i][t].z : k[i][t].x, half ? k[i][t].w : k[i][t].y);
      }
}

/// Number `j` of both, side by side.
rlx_inside unsigned pair_of(const uint4& a, const uint4& b, int j) {
  const unsigned x = j / 2 == 0 ? a.x : j / 2 == 1 ? a.y : j / 2 == 2 ? a.z : a.w, y = j / 2 == 0 ? b.x : j / 2 == 1 ? b.y : j / 2 == 2 ? b.z : b.w;
  return j % 2 ? x >> 16 | (y & 0xffff0000u) : (x & 0xffffu) | y << 16;
}
rlx_inside void multiply_values(float (&o)[values / 8][4], const unsigned (&weights)[pieces][4], const uint4 (&v)[value_runs][4]) {
#pragma unroll
  for (int t = 0; t < value_runs; ++t)
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const unsigned low = pair_of(v[t][0], v[t][1], j), high = pair_of(v[t][2], v[t][3], j);
#pragma unroll
      for (int piece = 0; piece < pieces; ++piece) rlx_multiply(Element(), o[8 * t + j], weights[piece], low, high);
    }
}

struct Sums {
  float o[values / 8][4], most[2], sum[2];
};

/// Scores of 16 keys become weights, and what was summed before is scaled.
rlx_inside void weigh(const Problem& p, const OnChip& on_chip, float (&s)[2][4], Sums& sums, long long first, unsigned (&weights)[pieces][4]) {
  const int group = threadIdx.x % 32 / 4;
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const long long row = group + 8 * h;
    float highest = sums.most[h];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const long long key = first + threadIdx.x % 4 * 2 + i % 2 + i / 2 * 8;
      float& x = s[i / 2][2 * h + i % 2];
      const bool sees = on_chip.first[row] <= key && key <= on_chip.last[row];
      x = sees ? score(p, x, p.kv_head * p.share + row % p.share, row / p.share, key) : -INFINITY;
      highest = fmaxf(highest, x);
    }
    highest = fmaxf(highest, __shfl_xor_sync(0xffffffffu, highest, 1));
    highest = fmaxf(highest, __shfl_xor_sync(0xffffffffu, highest, 2));
    const float base = highest == -INFINITY ? 0.0f : highest, factor = exp2f((sums.most[h] - base) * log2_e);
    sums.most[h] = highest, sums.sum[h] *= factor;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      float& x = s[i / 2][2 * h + i % 2];
      x = exp2f((x - base) * log2_e);
      sums.sum[h] += x;
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      unsigned two[pieces];
      cut(s[half][2 * h], s[half][2 * h + 1], two);
#pragma unroll
      for (int piece = 0; piece < pieces; ++piece) weights[piece][2 * half + h] = two[piece];
    }
#pragma unroll
    for (int i = 0; i < values / 8; ++i) sums.o[i][2 * h] *= factor, sums.o[i][2 * h + 1] *= factor;
  }
}

/// What this warp found, on chip.
rlx_inside void keep(OnChip& on_chip, Sums& sums) {
  const int group = threadIdx.x % 32 / 4, quarter = threadIdx.x % 4;
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    sums.sum[h] += __shfl_xor_sync(0xffffffffu, sums.sum[h], 1);
    sums.sum[h] += __shfl_xor_sync(0xffffffffu, sums.sum[h], 2);
    float* const to = on_chip.parts[threadIdx.x / 32][group + 8 * h];
#pragma unroll
    for (int i = 0; i < values / 8; ++i)
      for (int e = 0; e < 2; ++e) to[i / 8 * 64 + (2 * quarter + e) * 8 + i % 8] = sums.o[i][2 * h + e];
    if (quarter == 0) to[values] = sums.most[h], to[values + 1] = sums.sum[h];
  }
}

/// Of `count` parts of a row that are `stride` numbers apart: number `d` of all together. The last two are the most and the sum.
rlx_inside float joined(const float* parts, int count, long long stride, int d) {
  float highest = -INFINITY, total = 0;
  for (int i = 0; i < count; ++i) highest = fmaxf(highest, parts[i * stride + values]);
  const float base = highest == -INFINITY ? 0.0f : highest;
#pragma unroll 4
  for (int i = 0; i < count; ++i) total = fmaf(parts[i * stride + d], exp2f((parts[i * stride + values] - base) * log2_e), total);
  return d == values ? highest : total;
}

rlx_inside void attend(const Problem& p) {
  extern __shared__ __align__(16) unsigned char memory[];
  OnChip& on_chip = *(OnChip*)memory;
  find_visible(p, on_chip.first, on_chip.last);
  load_queries(p, on_chip);
  __syncthreads();
  long long begin = p.keys, end = 0;
  for (int r = 0; r < tile_rows; ++r) {
    if (on_chip.first[r] > on_chip.last[r]) continue;
    if (on_chip.first[r] < begin) begin = on_chip.first[r];
    if (on_chip.last[r] + 1 > end) end = on_chip.last[r] + 1;
  }
  const long long all = end > begin ? end - begin : 0, each = (all + splits * warps * step - 1) / (splits * warps * step) * (warps * step);
  begin += p.split * each;
  if (begin + each < end) end = begin + each;
  Sums sums = {{}, {-INFINITY, -INFINITY}, {0, 0}};
  uint4 k[2][key_runs], v[value_runs][4];
  long long first = begin + threadIdx.x / 32 * step;
  if (first < end) load_keys(k, p, first, end);
  for (; first < end; first += warps * step) {
    load_values(v, p, first, end);
    float s[2][4] = {};
    unsigned weights[pieces][4];
    multiply_keys(s, on_chip, k);
    if (first + warps * step < end) load_keys(k, p, first + warps * step, end);
    weigh(p, on_chip, s, sums, first, weights);
    multiply_values(sums.o, weights, v);
  }
  keep(on_chip, sums);
  __syncthreads();
  for (int i = threadIdx.x; i < p.queries * p.share * part_numbers; i += lanes) {
    const int row = i / part_numbers, d = i % part_numbers;
    p.parts[((long long)row * splits + p.split) * part_numbers + d] = joined(on_chip.parts[0][row], warps, tile_rows * part_numbers, d);
  }
}
)";

// A group for each row.
constexpr std::string_view joining_code = R"(
constexpr int part_numbers = values + 2;

__device__ void attend(const Problem& p) {
  extern __shared__ float factors[];
  const float* const parts = p.parts + p.first_row * splits * part_numbers;
  float highest = -INFINITY, sum = 0;
  for (int i = 0; i < splits; ++i) highest = highest > parts[i * part_numbers + values] ? highest : parts[i * part_numbers + values];
  const float base = highest == -INFINITY ? 0.0f : highest;
  for (int i = threadIdx.x; i < splits; i += lanes) factors[i] = expf(parts[i * part_numbers + values] - base);
  __syncthreads();
  for (int i = 0; i < splits; ++i) sum = fmaf(parts[i * part_numbers + values + 1], factors[i], sum);
  Out* const to = p.out.at(p.kv_head * p.share + p.first_row % p.share, p.first_row / p.share);
  for (int d = threadIdx.x; d < values; d += lanes) {
    float total = 0;
#pragma unroll 8
    for (int i = 0; i < splits; ++i) total = fmaf(parts[i * part_numbers + d], factors[i], total);
    to[d * p.out.column] = narrowed(sum == 0 ? 0 : total / sum, (Out*)0);
  }
}
)";

}  // namespace

bool takes_split_code(const Graph& graph, const AttentionViews& a) {
  const DType element = graph.type(a.k.value).dtype;
  const auto fits = [](const Dim& features) { return features == Dim(64) || features == Dim(128); };
  return (element == bf16 || element == f16) && !a.k_scales && !a.v_scales && fits(a.head_size) && fits(a.value_size) && lies_well(a.k) &&
         lies_well(a.v);
}

AttentionCode split_attention(const Graph& graph, const AttentionViews& a) {
  constexpr int lanes = 256;
  const DType element = graph.type(a.k.value).dtype;
  const int pieces = graph.type(a.q.value).dtype != f32 ? 1 : element == f16 ? 2 : 3;
  const auto features = static_cast<int>(a.head_size.value()), values = static_cast<int>(a.value_size.value());
  const std::string own = fmt::format("typedef rlx_{} Element;\nconstexpr bool element_is_f16 = {};\n", name(element), element == f16);
  const int on_chip_bytes = features / 32 * 2 * pieces * 512 + split_rows * 8 + lanes / 32 * split_rows * (values + 2) * 4;
  return {warp_numbers(), own + std::string(split_loops), split_rows, 16, lanes, on_chip_bytes};
}

AttentionCode joining_attention(int splits) { return {{}, std::string(joining_code), 1, 1, 128, splits * 4}; }

}  // namespace rlx::gpu
