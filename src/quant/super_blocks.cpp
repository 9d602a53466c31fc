#include "quant/super_blocks.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "quant/block.h"
#include "quant/lattice.h"
#include "quant/search.h"
#include "quant/search_lanes.h"
#include "quant/steps.h"

namespace rlx::quant {
namespace {

template <class Scheme>
using Block = BlockStep<Scheme, 1>;

/// The groups of a block: group g is lane g % lanes of tile g / lanes.
template <class Scheme>
struct Groups {
  static constexpr int count = Scheme::values / Scheme::group, tiles = count / lanes;
  Tile<Scheme::group> tile[tiles];

  explicit Groups(const Block<Scheme>& block) {
    for (int t = 0; t < tiles; ++t) tile[t].load(block.x + t * lanes * Scheme::group, block.w + t * lanes * Scheme::group);
  }
};

/// A number for each group.
template <class Scheme>
using PerGroup = Lanes[Groups<Scheme>::tiles];

template <class Scheme>
float extreme_of(const PerGroup<Scheme>& numbers) {
  float extreme = 0;
  for (const Lanes& some : numbers) {
    for (int g = 0; g < lanes; ++g) extreme = std::fabs(some[g]) > std::fabs(extreme) ? some[g] : extreme;
  }
  return extreme;
}

inline float sum_of(const Lanes& numbers) {
  float sum = 0;
  for (int g = 0; g < lanes; ++g) sum += numbers[g];
  return sum;
}

template <class Scheme, class Lattice>
void put_codes(Block<Scheme>& block, int tile_index, const Tile<Scheme::group>& tile, const Line& line) {
  const Lanes inverse_scale = inverse(line.scale);
  for (int i = 0; i < Scheme::group; ++i) {
    const Lanes codes = Lattice::code((tile.x[i] - line.offset) * inverse_scale);
    for (int g = 0; g < lanes; ++g) block.put_code(0, (tile_index * lanes + g) * Scheme::group + i, static_cast<int>(codes[g]));
  }
}

/// The integer scale of each group with which, at the block's scale, the error is least: one of the three next to what the group alone
/// would have. Returns the error of all.
template <class Scheme, class Lattice, class Scales>
float choose_scales(const Groups<Scheme>& groups, const PerGroup<Scheme>& wanted, float block_scale, PerGroup<Scheme>& chosen) {
  const float unit = block_scale == 0 ? 0 : 1 / block_scale;
  Lanes total{};
  for (int t = 0; t < Groups<Scheme>::tiles; ++t) {
    Lanes least = all(std::numeric_limits<float>::max());
    for (int away = -1; away <= 1; ++away) {
      const Lanes candidate = Scales::value(nearest(wanted[t] * unit) + static_cast<float>(away));
      const Lanes error = error_at<Lattice>(groups.tile[t], candidate * block_scale);
      chosen[t] = error < least ? candidate : chosen[t];
      least = smaller(error, least);
    }
    total += least;
  }
  return sum_of(total);
}

/// The block's scale of least error for the codes that its integer scales give.
template <class Scheme, class Lattice>
float fit_block_scale(const Groups<Scheme>& groups, const PerGroup<Scheme>& integers, float block_scale) {
  Sums total;
  for (int t = 0; t < Groups<Scheme>::tiles; ++t) {
    const Sums sums = sums_at<Lattice>(groups.tile[t], inverse(integers[t] * block_scale));
    total.xq += integers[t] * sums.xq;
    total.qq += integers[t] * integers[t] * sums.qq;
  }
  const float qq = sum_of(total.qq);
  return qq > 0 ? sum_of(total.xq) / qq : block_scale;
}

/// Formats whose groups have signed integer scales. `put_scale(block, g, integer)` stores one of them.
template <class Scheme, class Lattice, class Scales, class PutScale>
void encode_scaled(const float* values, const float* importance, std::byte* blocks, std::int64_t count, const Trials& trials,
                   PutScale put_scale) {
  encode_steps<Scheme, 1>(values, importance, blocks, count, [&](Block<Scheme>& block) {
    const Groups<Scheme> groups(block);
    PerGroup<Scheme> wanted, chosen, best_chosen{};
    for (int t = 0; t < Groups<Scheme>::tiles; ++t) wanted[t] = search_scale<Lattice>(groups.tile[t], trials);
    float best_error = std::numeric_limits<float>::max(), best_scale = 0;
    float scale = extreme_of<Scheme>(wanted) / Scales::lowest;
    for (int round = 0; round < 2; ++round) {
      scale = block.put_f16(0, Scheme::scale_at, scale);
      const float error = choose_scales<Scheme, Lattice, Scales>(groups, wanted, scale, chosen);
      if (error < best_error) {
        best_error = error;
        best_scale = scale;
        std::copy(std::begin(chosen), std::end(chosen), best_chosen);
      }
      scale = fit_block_scale<Scheme, Lattice>(groups, chosen, scale);
    }
    block.put_f16(0, Scheme::scale_at, best_scale);
    for (int t = 0; t < Groups<Scheme>::tiles; ++t) {
      put_codes<Scheme, Lattice>(block, t, groups.tile[t], Line{best_chosen[t] * best_scale, Lanes{}});
      for (int g = 0; g < lanes; ++g) put_scale(block.block(0), t * lanes + g, static_cast<int>(best_chosen[t][g]));
    }
  });
}

/// Stores six bits of an integer that may be negative.
template <class Scheme>
void put_scale(std::byte* block, int g, int integer) {
  put(block, Scheme::scale_low(g), integer + 32);
  put(block, Scheme::scale_high(g), integer + 32);
}

/// Scales and minima of the groups of a block as integers, and what they count.
template <class Scheme>
struct LineIntegers {
  float scale = 0, min = 0;  // of the block
  PerGroup<Scheme> scales{}, mins{};

  Line line(int t) const { return {scales[t] * scale, mins[t] * -min}; }
};

/// The integers next to what the groups alone would have that make the error least, as choose_scales. Returns the error of all.
template <class Scheme, class Lattice, class Scales>
float choose_lines(const Groups<Scheme>& groups, const Line (&wanted)[Groups<Scheme>::tiles], LineIntegers<Scheme>& integers) {
  const float scale_unit = integers.scale == 0 ? 0 : 1 / integers.scale, min_unit = integers.min == 0 ? 0 : 1 / integers.min;
  Lanes total{};
  for (int t = 0; t < Groups<Scheme>::tiles; ++t) {
    Lanes least = all(std::numeric_limits<float>::max());
    for (int pair = 0; pair < 9; ++pair) {
      const int scale_away = pair / 3 - 1, min_away = pair % 3 - 1;
      const Lanes scale = Scales::value(nearest(wanted[t].scale * scale_unit) + static_cast<float>(scale_away));
      const Lanes min = Scales::value(nearest(wanted[t].offset * -min_unit) + static_cast<float>(min_away));
      const Lanes error = error_at<Lattice>(groups.tile[t], Line{scale * integers.scale, min * -integers.min});
      integers.scales[t] = error < least ? scale : integers.scales[t];
      integers.mins[t] = error < least ? min : integers.mins[t];
      least = smaller(error, least);
    }
    total += least;
  }
  return sum_of(total);
}

/// The block's scale and minimum of least error for the codes that its integers give.
template <class Scheme, class Lattice>
void fit_block_line(const Groups<Scheme>& groups, LineIntegers<Scheme>& integers) {
  LineSums total;
  for (int t = 0; t < Groups<Scheme>::tiles; ++t) {
    const LineSums sums = line_sums<Lattice>(groups.tile[t], integers.line(t), sums_without_codes(groups.tile[t]));
    const Lanes scales = integers.scales[t], mins = integers.mins[t];
    total.w += mins * mins * sums.w;
    total.x += mins * sums.x;
    total.q += scales * mins * sums.q;
    total.xq += scales * sums.xq;
    total.qq += scales * scales * sums.qq;
  }
  const LineSums sums{all(sum_of(total.w)), all(sum_of(total.x)), all(sum_of(total.q)), all(sum_of(total.xq)), all(sum_of(total.qq))};
  const Line line = fit_line(sums, Lanes{});
  integers.scale = line.scale[0];
  integers.min = -line.offset[0];
}

/// Formats whose groups have integer scales and minima.
template <class Scheme, class Lattice, class Scales>
void encode_lines(const float* values, const float* importance, std::byte* blocks, std::int64_t count, const LineTrials& trials) {
  encode_steps<Scheme, 1>(values, importance, blocks, count, [&](Block<Scheme>& block) {
    const Groups<Scheme> groups(block);
    Line wanted[Groups<Scheme>::tiles];
    PerGroup<Scheme> wanted_scales, wanted_offsets;
    for (int t = 0; t < Groups<Scheme>::tiles; ++t) {
      wanted[t] = search_line<Lattice>(groups.tile[t], Lanes{}, trials);
      wanted_scales[t] = wanted[t].scale, wanted_offsets[t] = wanted[t].offset;
    }
    LineIntegers<Scheme> integers, best;
    integers.scale = extreme_of<Scheme>(wanted_scales) / Scales::highest;
    integers.min = -extreme_of<Scheme>(wanted_offsets) / Scales::highest;
    float best_error = std::numeric_limits<float>::max();
    for (int round = 0; round < 2; ++round) {
      integers.scale = block.put_f16(0, Scheme::scale_at, integers.scale);
      integers.min = block.put_f16(0, Scheme::min_at, integers.min);
      const float error = choose_lines<Scheme, Lattice, Scales>(groups, wanted, integers);
      if (error < best_error) best_error = error, best = integers;
      fit_block_line<Scheme, Lattice>(groups, integers);
    }
    block.put_f16(0, Scheme::scale_at, best.scale);
    block.put_f16(0, Scheme::min_at, best.min);
    for (int t = 0; t < Groups<Scheme>::tiles; ++t) {
      put_codes<Scheme, Lattice>(block, t, groups.tile[t], best.line(t));
      for (int g = 0; g < lanes; ++g) {
        const int group = t * lanes + g, scale = static_cast<int>(best.scales[t][g]), min = static_cast<int>(best.mins[t][g]);
        put(block.block(0), Scheme::scale_low(group), scale);
        put(block.block(0), Scheme::min_low(group), min);
        if constexpr (requires { Scheme::scale_high(group); }) {
          put(block.block(0), Scheme::scale_high(group), scale);
          put(block.block(0), Scheme::min_high(group), min);
        }
      }
    }
  });
}

}  // namespace

void Q2_K::encode(const float* values, const float* importance, std::byte* blocks, std::int64_t count) {
  encode_lines<Q2_K, Integers<0, 3>, Integers<0, 15>>(values, importance, blocks, count, {0.15f, 3, 3});
}
void Q4_K::encode(const float* values, const float* importance, std::byte* blocks, std::int64_t count) {
  encode_lines<Q4_K, Integers<0, 15>, Integers<0, 63>>(values, importance, blocks, count, {0.06f, 4, 2});
}
void Q5_K::encode(const float* values, const float* importance, std::byte* blocks, std::int64_t count) {
  encode_lines<Q5_K, Integers<0, 31>, Integers<0, 63>>(values, importance, blocks, count, {0.025f, 4, 2});
}
void Q3_K::encode(const float* values, const float* importance, std::byte* blocks, std::int64_t count) {
  encode_scaled<Q3_K, Integers<-4, 3>, Integers<-32, 31>>(values, importance, blocks, count, {0.7f, 0.05f, 12}, put_scale<Q3_K>);
}
void Q6_K::encode(const float* values, const float* importance, std::byte* blocks, std::int64_t count) {
  const auto put_byte = [](std::byte* block, int g, int integer) { put(block, scales_at + g, static_cast<std::int8_t>(integer)); };
  encode_scaled<Q6_K, Integers<-32, 31>, Integers<-128, 127>>(values, importance, blocks, count, {0.9f, 0.015f, 12}, put_byte);
}
void IQ4_XS::encode(const float* values, const float* importance, std::byte* blocks, std::int64_t count) {
  encode_scaled<IQ4_XS, NonlinearCodes, Integers<-32, 31>>(values, importance, blocks, count, {0.75f, 0.05f, 10}, put_scale<IQ4_XS>);
}

void Q8_K::encode(const float* values, const float* importance, std::byte* blocks, std::int64_t count) {
  using Bytes = Integers<-127, 127>;
  encode_steps<Q8_K, lanes>(values, importance, blocks, count, [&](BlockStep<Q8_K, lanes>& step) {
    Tile<Q8_K::values> tile;
    tile.load(step.x, step.w);
    const Lanes scale = search_scale<Bytes>(tile, {0.985f, 0.002f, 10}), inverse_scale = inverse(scale);
    constexpr float largest = 0x1.02p121f;  // 127 times which is just finite
    for (int g = 0; g < lanes; ++g) put(step.block(g), 0, std::clamp(step.outside(g, scale[g]), -largest, largest));
    for (int first = 0; first < Q8_K::values; first += 16) {
      Lanes sum{};
      for (int i = first; i < first + 16; ++i) {
        const Lanes codes = Bytes::value(tile.x[i] * inverse_scale);
        sum += codes;
        for (int g = 0; g < lanes; ++g) put(step.block(g), codes_at + i, static_cast<std::int8_t>(codes[g]));
      }
      for (int g = 0; g < lanes; ++g) put(step.block(g), sums_at + first / 8, static_cast<std::int16_t>(sum[g]));
    }
  });
}

}  // namespace rlx::quant
