#include "quant/small_blocks.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "base/small_float.h"
#include "quant/block.h"
#include "quant/lattice.h"
#include "quant/search.h"
#include "quant/search_lanes.h"
#include "quant/steps.h"

namespace rlx::quant {
namespace {

/// One block a lane.
template <class Scheme>
using Blocks = BlockStep<Scheme, lanes>;

template <class Scheme>
Tile<Scheme::values> tile_of(const Blocks<Scheme>& step) {
  Tile<Scheme::values> tile;
  tile.load(step.x, step.w);
  return tile;
}

template <class Scheme, class Lattice>
void put_codes(Blocks<Scheme>& step, const Tile<Scheme::values>& tile, const Line& line) {
  const Lanes inverse_scale = inverse(line.scale);
  for (int i = 0; i < Scheme::values; ++i) {
    const Lanes codes = Lattice::code((tile.x[i] - line.offset) * inverse_scale);
    for (int g = 0; g < lanes; ++g) step.put_code(g, i, static_cast<int>(codes[g]));
  }
}

/// Formats of one f16 scale.
template <class Scheme, class Lattice>
void encode_scaled(const float* values, const float* importance, std::byte* blocks, std::int64_t count, const Trials& trials) {
  encode_steps<Scheme, lanes>(values, importance, blocks, count, [&](Blocks<Scheme>& step) {
    const auto tile = tile_of(step);
    Line line{search_scale<Lattice>(tile, trials), {}};
    for (int g = 0; g < lanes; ++g) line.scale[g] = step.put_f16(g, 0, line.scale[g]);
    put_codes<Scheme, Lattice>(step, tile, line);
  });
}

/// Formats of an f16 scale and an f16 offset.
template <class Scheme, class Lattice>
void encode_line(const float* values, const float* importance, std::byte* blocks, std::int64_t count, const LineTrials& trials) {
  encode_steps<Scheme, lanes>(values, importance, blocks, count, [&](Blocks<Scheme>& step) {
    const auto tile = tile_of(step);
    Line line = search_line<Lattice>(tile, all(std::numeric_limits<float>::max()), trials);
    for (int g = 0; g < lanes; ++g) {
      line.scale[g] = step.put_f16(g, 0, line.scale[g]);
      line.offset[g] = step.put_f16(g, 2, line.offset[g]);
    }
    put_codes<Scheme, Lattice>(step, tile, line);
  });
}

using Bytes = Integers<-127, 127>;
constexpr Trials byte_trials{0.985f, 0.002f, 10};

}  // namespace

void Q4_0::encode(const float* values, const float* importance, std::byte* blocks, std::int64_t count) {
  encode_scaled<Q4_0, Integers<-8, 7>>(values, importance, blocks, count, {0.75f, 0.03f, 20});
}
void Q5_0::encode(const float* values, const float* importance, std::byte* blocks, std::int64_t count) {
  encode_scaled<Q5_0, Integers<-16, 15>>(values, importance, blocks, count, {0.85f, 0.02f, 16});
}
void IQ4_NL::encode(const float* values, const float* importance, std::byte* blocks, std::int64_t count) {
  encode_scaled<IQ4_NL, NonlinearCodes>(values, importance, blocks, count, {0.75f, 0.04f, 14});
}
void Q4_1::encode(const float* values, const float* importance, std::byte* blocks, std::int64_t count) {
  encode_line<Q4_1, Integers<0, 15>>(values, importance, blocks, count, {0.06f, 4, 3});
}
void Q5_1::encode(const float* values, const float* importance, std::byte* blocks, std::int64_t count) {
  encode_line<Q5_1, Integers<0, 31>>(values, importance, blocks, count, {0.025f, 4, 3});
}

namespace {

/// The codes of a tile as signed bytes at `offset` of each block, and their sums.
template <class Scheme>
Lanes put_bytes(Blocks<Scheme>& step, int offset, const Tile<Scheme::values>& tile, Lanes scale) {
  const Lanes inverse_scale = inverse(scale);
  Lanes sum{};
  for (int i = 0; i < Scheme::values; ++i) {
    const Lanes codes = Bytes::value(tile.x[i] * inverse_scale);
    sum += codes;
    for (int g = 0; g < lanes; ++g) put(step.block(g), offset + i, static_cast<std::int8_t>(codes[g]));
  }
  return sum;
}

}  // namespace

void Q8_0::encode(const float* values, const float* importance, std::byte* blocks, std::int64_t count) {
  encode_steps<Q8_0, lanes>(values, importance, blocks, count, [&](Blocks<Q8_0>& step) {
    const auto tile = tile_of(step);
    Lanes scale = search_scale<Bytes>(tile, byte_trials);
    for (int g = 0; g < lanes; ++g) scale[g] = step.put_f16(g, 0, scale[g]);
    put_bytes(step, 2, tile, scale);
  });
}

void Q8_1::encode(const float* values, const float* importance, std::byte* blocks, std::int64_t count) {
  encode_steps<Q8_1, lanes>(values, importance, blocks, count, [&](Blocks<Q8_1>& step) {
    const auto tile = tile_of(step);
    Lanes scale = search_scale<Bytes>(tile, byte_trials);
    for (int g = 0; g < lanes; ++g) scale[g] = step.put_f16(g, 0, scale[g]);
    const Lanes sum = put_bytes(step, 4, tile, scale) * scale;
    for (int g = 0; g < lanes; ++g) step.put_f16(g, 2, sum[g]);
  });
}

void MXFP4::encode(const float* values, const float* importance, std::byte* blocks, std::int64_t count) {
  encode_steps<MXFP4, lanes>(values, importance, blocks, count, [&](Blocks<MXFP4>& step) {
    constexpr int largest = 252;  // with which the largest code is just finite
    const auto tile = tile_of(step);
    Lanes best_error = all(std::numeric_limits<float>::max()), exponent{};
    Line best;
    for (int power = -5; power <= -3; ++power) {  // the largest code, 12, stands for something between 1/2 and 1, or a little less
      Lanes candidate{}, scale{};
      for (int g = 0; g < lanes; ++g) {
        candidate[g] = static_cast<float>(std::clamp(128 + power + step.exponent[g], 0, largest));
        scale[g] = step.inside(g, MXFP4::scale(static_cast<int>(candidate[g])));
      }
      const Lanes error = error_at<FloatCodes>(tile, scale);
      exponent = error < best_error ? candidate : exponent;
      best.scale = error < best_error ? scale : best.scale;
      best_error = smaller(error, best_error);
    }
    for (int g = 0; g < lanes; ++g) put(step.block(g), 0, static_cast<std::uint8_t>(exponent[g]));
    put_codes<MXFP4, FloatCodes>(step, tile, best);
  });
}

namespace {

constexpr int nvfp4_group = 16, nvfp4_groups = 4;

/// The bits of the scale of NVFP4 nearest to one, `away` patterns off. Half a float of four bits of exponent is the scale.
int nvfp4_scale_bits(float scale, int away) {
  const auto bits = static_cast<int>(encode(f8e4m3_format, std::min(2.0f * scale, 448.0f)));
  return std::clamp(bits + away, 0, 126);
}

}  // namespace

void NVFP4::encode(const float* values, const float* importance, std::byte* blocks, std::int64_t count) {
  encode_steps<NVFP4, lanes>(values, importance, blocks, count, [&](Blocks<NVFP4>& step) {
    for (int first = 0; first < nvfp4_groups * lanes; first += lanes) {
      Tile<nvfp4_group> tile;
      tile.load(step.x + first * nvfp4_group, step.w + first * nvfp4_group);
      const Lanes searched = magnitude(search_scale<FloatCodes>(tile, {0.75f, 0.05f, 12}));
      Lanes best_error = all(std::numeric_limits<float>::max()), bits{}, best{};
      for (int away = -1; away <= 1; ++away) {
        Lanes candidate{}, scale{};
        for (int g = 0; g < lanes; ++g) {
          const int block = (first + g) / nvfp4_groups, pattern = nvfp4_scale_bits(step.outside(block, searched[g]), away);
          candidate[g] = static_cast<float>(pattern);
          scale[g] = step.inside(block, NVFP4::scale(pattern));
        }
        const Lanes error = error_at<FloatCodes>(tile, scale);
        bits = error < best_error ? candidate : bits;
        best = error < best_error ? scale : best;
        best_error = smaller(error, best_error);
      }
      const Lanes inverse_scale = inverse(best);
      for (int g = 0; g < lanes; ++g) {
        put(step.block((first + g) / nvfp4_groups), (first + g) % nvfp4_groups, static_cast<std::uint8_t>(bits[g]));
      }
      for (int i = 0; i < nvfp4_group; ++i) {
        const Lanes codes = FloatCodes::code(tile.x[i] * inverse_scale);
        for (int g = 0; g < lanes; ++g) {
          const int group = first + g;
          step.put_code(group / nvfp4_groups, group % nvfp4_groups * nvfp4_group + i, static_cast<int>(codes[g]));
        }
      }
    }
  });
}

}  // namespace rlx::quant
