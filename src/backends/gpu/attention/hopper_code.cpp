// Attention of bf16 and f16 on Hopper: two groups of four warps multiply tiles on chip, as FlashAttention 3 does (Shah et al. 2024), and a
// third one brings them.
#include <optional>

#include <fmt/format.h>

#include "backends/gpu/attention/kernels.h"
#include "backends/gpu/instructions/kept_numbers.h"

namespace rlx::gpu {
namespace {

// Rows on chip are panels of 64 features: 128 bytes, turned as products read them. Unit u of what is brought is the keys of tile u and the
// values of tile u - 1, as the products with the former run beside the softmax of the latter. A lane has rows r and r + 8 of the sixteen of
// its warp, and of each 8 columns two.
constexpr std::string_view code = R"(
constexpr int row_bytes = 128, rows_of_group = 64, stages = 3, loaders = 128, panel = 64, value_keys = 64;
constexpr int q_bytes = tile_rows * features * 2, k_bytes = tile_keys * features * 2, v_bytes = tile_keys * values * 2;
constexpr int scores = tile_keys / 2, sums = values / 2;
constexpr bool plain = softcap == 0 && !masked && !biased && scale > 0;
constexpr float log2_e = 1.44269504f, to_log2 = plain ? scale * log2_e : log2_e;

struct OnChip {
  unsigned char q[q_bytes], k[stages][k_bytes], v[stages][v_bytes];
  rlx_barrier full[stages], empty[stages], queries;
  int first[tile_rows], last[tile_rows];
};

struct Seen {
  int least_first, most_first, least_last, most_last;
};
/// What of the keys rows begin..begin+count-1 see, as far as positions and window go; of those that there are.
rlx_inside Seen seen_by(const Problem& p, const OnChip& on_chip, int begin, int count) {
  Seen seen = {(int)p.keys, 0, (int)p.keys - 1, -1};
  for (int r = begin + threadIdx.x % 32; r < begin + count && p.first_row + r < p.queries * p.share; r += 32) {
    const int first = on_chip.first[r], last = on_chip.last[r];
    seen.most_first = max(seen.most_first, first), seen.least_last = min(seen.least_last, last);
    if (first <= last) seen.least_first = min(seen.least_first, first), seen.most_last = max(seen.most_last, last);
  }
  for (int by = 1; by < 32; by *= 2) {
    seen.least_first = min(seen.least_first, __shfl_xor_sync(0xffffffffu, seen.least_first, by));
    seen.most_first = max(seen.most_first, __shfl_xor_sync(0xffffffffu, seen.most_first, by));
    seen.least_last = min(seen.least_last, __shfl_xor_sync(0xffffffffu, seen.least_last, by));
    seen.most_last = max(seen.most_last, __shfl_xor_sync(0xffffffffu, seen.most_last, by));
  }
  return seen;
}

rlx_inside int turned(int row, int part) { return row * row_bytes + ((part ^ (row & 7)) << 4); }

/// Rows first..end-1 of a head, in panels of `rows` rows each, one behind the other; those behind `end` are zeros.
template <int width, int rows, class T>
rlx_inside void bring(unsigned char* to, const Rows<T>& from, long long head, long long first, long long end) {
  constexpr int parts = width / 8, step = loaders / parts;
  const int lane = threadIdx.x % loaders, part = lane % parts;
  const T* next = from.data + head * from.head + (first + lane / parts) * from.row + part * 8;  // where rows lie in no pages
#pragma unroll 4
  for (int r = lane / parts; r < tile_keys; r += step, next += step * from.row) {
    const bool there = first + r < end;
    unsigned char* const of_panel = to + (r / rows * (width / panel) + part / 8) * (rows * row_bytes);
    const T* const at = from.table ? from.at(head, there ? first + r : 0) + part * 8 : next;
    rlx_copy_16(of_panel + turned(r % rows, part % 8), at, there ? 16 : 0);
  }
}

/// By `count` lanes, of which this is `lane`.
rlx_inside void bring_queries(unsigned char* to, const Problem& p, int lane, int count) {
  constexpr int parts = features / 8;
  for (int i = lane; i < tile_rows * parts; i += count) {
    const int r = i / parts, part = i % parts;
    const long long row = p.first_row + r, of = row < p.queries * p.share ? row : 0;
    rlx_copy_16(to + part / 8 * (tile_rows * row_bytes) + turned(r, part % 8),
                p.q.at(p.kv_head * p.share + of % p.share, of / p.share) + part * 8, of == row ? 16 : 0);
  }
}

rlx_inside void bring_boxes(const Problem& p, OnChip& on_chip, int begin, int tiles) {
  constexpr int box_bytes = value_keys * row_bytes, across = values / panel;
  for (int unit = 0; unit <= tiles; ++unit) {
    rlx_barrier* const full = &on_chip.full[unit % stages];
    if (unit >= stages) rlx_wait(&on_chip.empty[unit % stages], (unit / stages - 1) & 1);
    rlx_arrive_with(full, (unit < tiles ? k_bytes : 0) + (unit > 0 ? v_bytes : 0));
    const int keys = begin + unit * tile_keys;
    if (unit < tiles)
      for (int i = 0; i < features / panel; ++i)
        rlx_copy_box(on_chip.k[unit % stages] + i * (tile_keys * row_bytes), *(const rlx_map*)p.k_map, full, i * panel, keys, p.item);
    if (unit > 0)
      for (int i = 0; i < v_bytes / box_bytes; ++i)
        rlx_copy_box(on_chip.v[unit % stages] + i * box_bytes, *(const rlx_map*)p.v_map, full, i % across * panel,
                     keys - tile_keys + i / across * value_keys, p.item);
  }
}

/// The first warp asks for boxes while the others copy the queries.
rlx_inside void bring_by_engine(const Problem& p, OnChip& on_chip, int begin, int tiles) {
  const int lane = threadIdx.x % loaders;
  if (lane == 0) bring_boxes(p, on_chip, begin, tiles);
  if (lane < 32) return;
  bring_queries(on_chip.q, p, lane - 32, loaders - 32);
  rlx_end_group();
  rlx_wait_groups<0>();
  rlx_show_copies();
  rlx_arrive(&on_chip.queries);
}

rlx_inside void bring_by_lanes(const Problem& p, OnChip& on_chip, long long begin, int tiles) {
  bring_queries(on_chip.q, p, threadIdx.x % loaders, loaders);
  for (int unit = 0; unit <= tiles; ++unit) {
    const int stage = unit % stages;
    if (unit >= stages) rlx_wait(&on_chip.empty[stage], (unit / stages - 1) & 1);
    if (unit < tiles) bring<features, tile_keys>(on_chip.k[stage], p.k, p.kv_head, begin + unit * tile_keys, p.keys);
    if (unit > 0) bring<values, value_keys>(on_chip.v[stage], p.v, p.kv_head, begin + (unit - 1) * tile_keys, p.keys);
    rlx_end_group();
    if (unit == 0) continue;
    rlx_wait_groups<1>();
    rlx_show_copies();
    rlx_arrive(&on_chip.full[(unit - 1) % stages]);
  }
  rlx_wait_groups<0>();
  rlx_show_copies();
  rlx_arrive(&on_chip.full[tiles % stages]);
}

rlx_inside void multiply_keys(float (&s)[scores], const unsigned char* q, const unsigned char* k) {
#pragma unroll
  for (int t = 0; t < features / 16; ++t)
    rlx_multiply_group<0, 0>(Element(), s, rlx_matrix(q + t / 4 * (tile_rows * row_bytes) + t % 4 * 32, 16),
                             rlx_matrix(k + t / 4 * (tile_keys * row_bytes) + t % 4 * 32, 16), t > 0);
}
rlx_inside void multiply_values(float (&o)[sums], const unsigned (&weights)[scores / 2], const unsigned char* v) {
  constexpr int panel_bytes = value_keys * row_bytes;
#pragma unroll
  for (int t = 0; t < tile_keys / 16; ++t)
    rlx_multiply_kept(Element(), o, weights + 4 * t,
                      rlx_matrix(v + t / 4 * (values / panel * panel_bytes) + t % 4 * 16 * row_bytes, panel_bytes));
}

struct Row {
  int first, last;
  float most, sum;
};

/// What the op does to scores before the softmax, and what is not seen.
template <bool edge>
rlx_inside void rule(const Problem& p, float (&s)[scores], const Row (&row)[2], int mine, int first_key) {
  if (plain && !edge) return;
#pragma unroll
  for (int i = 0; i < scores; ++i) {
    const int h = i / 2 % 2, key = first_key + threadIdx.x % 4 * 2 + i / 4 * 8 + i % 2;
    const bool sees = !edge || (row[h].first <= key && key <= row[h].last);
    const long long r = p.first_row + mine + 8 * h;
    if (!plain && sees) s[i] = score(p, s[i], p.kv_head * p.share + r % p.share, r / p.share, key);
    if (!sees) s[i] = -INFINITY;
  }
}

/// Scores become weights; `factor` is for what was summed before.
rlx_inside void weigh(float (&s)[scores], Row (&row)[2], float (&factor)[2]) {
  float most[4] = {row[0].most, row[0].most, row[1].most, row[1].most}, base[2], sum[4] = {0, 0, 0, 0};
#pragma unroll
  for (int i = 0; i < scores; ++i) most[i % 4] = fmaxf(most[i % 4], s[i]);
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    float highest = fmaxf(most[2 * h], most[2 * h + 1]);
    highest = fmaxf(highest, __shfl_xor_sync(0xffffffffu, highest, 1));
    highest = fmaxf(highest, __shfl_xor_sync(0xffffffffu, highest, 2));
    base[h] = highest == -INFINITY ? 0.0f : highest * to_log2;
    factor[h] = exp2f(fmaf(row[h].most, to_log2, -base[h]));
    row[h].most = highest;
  }
#pragma unroll
  for (int i = 0; i < scores; ++i) {
    s[i] = exp2f(fmaf(s[i], to_log2, -base[i / 2 % 2]));
    sum[i % 4] += s[i];
  }
#pragma unroll
  for (int h = 0; h < 2; ++h) row[h].sum = fmaf(row[h].sum, factor[h], sum[2 * h] + sum[2 * h + 1]);
}

rlx_inside void store(const Problem& p, const float (&o)[sums], const Row (&row)[2], int mine) {
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    float sum = row[h].sum;
    sum += __shfl_xor_sync(0xffffffffu, sum, 1);
    sum += __shfl_xor_sync(0xffffffffu, sum, 2);
    const float by = sum == 0 ? 0 : 1 / sum;
    const long long r = p.first_row + mine + 8 * h;
    if (r >= p.queries * p.share) continue;
    Out* const to = p.out.at(p.kv_head * p.share + r % p.share, r / p.share) + threadIdx.x % 4 * 2;
#pragma unroll
    for (int i = 0; i < sums / 4; ++i) {
      const unsigned two = rlx_two(Element(), o[4 * i + 2 * h] * by, o[4 * i + 2 * h + 1] * by);
      memcpy(to + 8 * i, &two, 4);
    }
  }
}

rlx_inside void compute(const Problem& p, OnChip& on_chip, int begin, int tiles) {
  const int group = threadIdx.x / 128, lane = threadIdx.x % 32;
  const int mine = group * rows_of_group + threadIdx.x / 32 % 4 * 16 + lane / 4;
  const Seen seen = seen_by(p, on_chip, group * rows_of_group, rows_of_group);
  Row row[2];
#pragma unroll
  for (int h = 0; h < 2; ++h) row[h] = {on_chip.first[mine + 8 * h], on_chip.last[mine + 8 * h], -INFINITY, 0};
  const unsigned char* const q = on_chip.q + group * rows_of_group * row_bytes;
  float s[scores], factor[2], o[sums] = {};
  unsigned weights[scores / 2];
  const auto soften = [&](int tile) {
    const int first_key = begin + tile * tile_keys;
    if (first_key < seen.most_first || first_key + tile_keys - 1 > seen.least_last) rule<true>(p, s, row, mine, first_key);
    else rule<false>(p, s, row, mine, first_key);
    weigh(s, row, factor);
  };
  const auto keep = [&] {
#pragma unroll
    for (int i = 0; i < scores / 2; ++i) weights[i] = rlx_two(Element(), s[2 * i], s[2 * i + 1]);
  };
  if (tiles > 0) {
    if (boxed) rlx_wait(&on_chip.queries, 0);
    rlx_wait(&on_chip.full[0], 0);
    rlx_settle(s);
    rlx_begin_products();
    multiply_keys(s, q, on_chip.k[0]);
    rlx_end_products();
    rlx_wait_products<0>();
    rlx_settle(s);
    if (lane == 0) rlx_arrive(&on_chip.empty[0]);
    soften(0);
    keep();
    for (int tile = 1; tile < tiles; ++tile) {
      const int stage = tile % stages;
      rlx_wait(&on_chip.full[stage], tile / stages & 1);
      rlx_settle(s), rlx_settle(o);
      rlx_begin_products();
      multiply_keys(s, q, on_chip.k[stage]);
      rlx_end_products();
      multiply_values(o, weights, on_chip.v[stage]);
      rlx_end_products();
      rlx_wait_products<1>();
      rlx_settle(s);
      soften(tile);
      rlx_wait_products<0>();
      rlx_settle(o);
      if (lane == 0) rlx_arrive(&on_chip.empty[stage]);
#pragma unroll
      for (int i = 0; i < sums; ++i) o[i] *= factor[i / 2 % 2];
      keep();
    }
    const int stage = tiles % stages;
    rlx_wait(&on_chip.full[stage], tiles / stages & 1);
    rlx_settle(o);
    rlx_begin_products();
    multiply_values(o, weights, on_chip.v[stage]);
    rlx_end_products();
    rlx_wait_products<0>();
    rlx_settle(o);
  }
  store(p, o, row, mine);
}

rlx_inside void attend(const Problem& p) {
  extern __shared__ __align__(1024) unsigned char memory[];
  OnChip& on_chip = *(OnChip*)memory;
  if (threadIdx.x == 0) {
    for (int i = 0; i < stages; ++i) rlx_begin_barrier(&on_chip.full[i], boxed ? 1 : loaders), rlx_begin_barrier(&on_chip.empty[i], 8);
    rlx_begin_barrier(&on_chip.queries, loaders - 32);
    rlx_begun_barriers();
  }
  find_visible(p, on_chip.first, on_chip.last);
  __syncthreads();
  const Seen seen = seen_by(p, on_chip, 0, tile_rows);
  const int begin = seen.least_first / tile_keys * tile_keys;
  const int tiles = seen.most_last < seen.least_first ? 0 : (seen.most_last - begin) / tile_keys + 1;
  if (threadIdx.x >= 2 * 128) {
    rlx_fewer_registers<boxed ? 24 : 40>();
    if (boxed) bring_by_engine(p, on_chip, begin, tiles);
    else bring_by_lanes(p, on_chip, begin, tiles);
  } else {
    rlx_more_registers<boxed ? 240 : 232>();
    compute(p, on_chip, begin, tiles);
  }
}
)";

constexpr int tile_keys = 128, rows = 128, stages = 3;

/// Boxes of so many keys, for the copy engine: heads of all items must lie apart by one stride.
std::optional<BoxMap> boxes(const Graph& graph, const AttentionViews& a, const StridedOperand& operand, const Dim& features, int buffer,
                            int keys) {
  const std::size_t axes = a.batch.size();
  const Dim &head = operand.strides[axes], &row = operand.strides[axes + 1];
  const auto& of_item = operand.strides;
  const bool one_stride = product(a.batch) == Dim(1) || (axes == 1 && of_item[0] == head * a.kv_heads);
  if (operand.pages || !operand.offset.is_static() || row == Dim(0) || !one_stride) return std::nullopt;
  const Dim items = product(a.batch) * a.kv_heads;
  if (!(items == Dim(1)) && head == Dim(0)) return std::nullopt;
  constexpr int side = 64;  // 128 bytes
  return BoxMap{buffer,
                graph.type(operand.value).dtype,
                operand.offset.value(),
                {features, a.keys, items},
                {row, items == Dim(1) ? Dim(side) : head},
                {side, keys}};
}

}  // namespace

bool takes_hopper_code(const Graph& graph, const AttentionViews& a) {
  const DType element = graph.type(a.q.value).dtype;
  const auto fits = [](const Dim& features) { return features == Dim(64) || features == Dim(128); };
  if ((element != bf16 && element != f16) || !fits(a.head_size) || !fits(a.value_size)) return false;
  for (const StridedOperand* operand : {&a.q, &a.k, &a.v, &a.out})
    if (graph.type(operand->value).dtype != element || !lies_well(*operand)) return false;
  return true;
}

AttentionCode hopper_attention(const Graph& graph, const AttentionViews& a) {
  const DType element = graph.type(a.q.value).dtype;
  const auto features = static_cast<int>(a.head_size.value()), values = static_cast<int>(a.value_size.value());
  AttentionCode result{kept_products(element, values), {}, rows, tile_keys, 3 * 128, 0};
  if (const auto k = boxes(graph, a, a.k, a.head_size, 1, tile_keys)) {
    const auto v = boxes(graph, a, a.v, a.value_size, 2, 64);
    if (v) result.maps = {*k, *v};
  }
  const std::string own = fmt::format("typedef rlx_{} Element;\nconstexpr bool boxed = {};\n", name(element), !result.maps.empty());
  result.text = own + std::string(code);
  result.on_chip_bytes = 2 * (rows * features + stages * tile_keys * (features + values)) + stages * 16 + 8 + rows * 8;
  return result;
}

}  // namespace rlx::gpu
