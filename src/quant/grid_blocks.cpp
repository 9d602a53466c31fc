#include "quant/grid_blocks.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "base/half.h"
#include "quant/block.h"
#include "quant/grid_search.h"
#include "quant/grids.h"
#include "quant/search_lanes.h"
#include "quant/steps.h"

namespace rlx::quant {
namespace {

struct Iq2Values {
  static constexpr std::array<float, 3> values{8, 25, 43};
};
struct Iq3XxsValues {
  static constexpr std::array<float, 8> values{4, 12, 20, 28, 36, 44, 52, 62};
};
struct Iq3SValues {
  static constexpr std::array<float, 8> values{1, 3, 5, 7, 9, 11, 13, 15};
};
struct Iq1Values {
  static constexpr std::array<float, 3> values{-1, 0, 1};
};

/// What a scale gives for a group: the error with the points chosen at it, and the sums from which the best scale for them follows.
struct Fit {
  float error = 0, xq = 0, qq = 0;
};

template <std::size_t parts>
float sum_of_all(const std::array<Lanes, parts>& numbers) {
  Lanes sum{};
  for (const Lanes& some : numbers) sum += some;
  return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

/// Adds what a point contributes whose unscaled values are q.
template <class Point>
void add(Fit& fit, const Point& x, const Point& w, const Point& q, float scale) {
  Point error, xq, qq;
  for (std::size_t p = 0; p < x.size(); ++p) {
    const Lanes difference = x[p] - scale * q[p], wq = w[p] * q[p];
    error[p] = w[p] * difference * difference;
    xq[p] = wq * x[p];
    qq[p] = wq * q[p];
  }
  fit.error += sum_of_all(error);
  fit.xq += sum_of_all(xq);
  fit.qq += sum_of_all(qq);
}

template <class Point>
Point load_point(const float* from) {
  Point point;
  for (std::size_t p = 0; p < point.size(); ++p) point[p] = load(from + p * lanes);
  return point;
}

/// A group of `points` points with one scale, as magnitudes and signs. Where only even numbers of minus signs can be stored, the value
/// whose wrong sign costs least gets one.
template <class Grid, int points, bool even>
struct SignedGroup {
  static constexpr int size = points * Grid::dims;
  using Point = typename Grid::Point;

  Point x[points], w[points];
  std::uint8_t signs[size / 8] = {};
  int chosen[points] = {};

  void load(const float* values, const float* weights) {
    float magnitudes[size];
    for (int first = 0; first < size; first += 8) {
      unsigned bits = 0;
      int cheapest = first;
      for (int i = first; i < first + 8; ++i) {
        magnitudes[i] = std::fabs(values[i]);
        bits |= static_cast<unsigned>(values[i] < 0) << (i - first);
        if (weights[i] * values[i] * values[i] < weights[cheapest] * values[cheapest] * values[cheapest]) cheapest = i;
      }
      if (even && std::popcount(bits) % 2 != 0) {
        bits ^= 1u << (cheapest - first);
        magnitudes[cheapest] = -magnitudes[cheapest];
      }
      signs[first / 8] = static_cast<std::uint8_t>(bits);
    }
    for (int p = 0; p < points; ++p) {
      x[p] = load_point<Point>(magnitudes + p * Grid::dims);
      w[p] = load_point<Point>(weights + p * Grid::dims);
    }
  }

  Fit choose(float scale) {
    const Grid& grid = Grid::instance();
    Fit fit;
    for (int p = 0; p < points; ++p) {
      chosen[p] = grid.nearest(x[p], w[p], scale);
      add(fit, x[p], w[p], grid.point(chosen[p]), scale);
    }
    return fit;
  }
};

using Iq1Grid = Grid<iq1_grid, 8, 2, Iq1Values>;

/// A group of `points` points with one scale, to whose values 1/8 is added or from which it is taken: for all the same, or for each point.
template <int points, bool each>
struct ShiftedGroup {
  static constexpr int size = points * Iq1Grid::dims;
  using Point = Iq1Grid::Point;

  Point x[points], w[points];
  int chosen[points] = {};
  bool minus[points] = {};

  void load(const float* values, const float* weights) {
    for (int p = 0; p < points; ++p) {
      x[p] = load_point<Point>(values + p * Iq1Grid::dims);
      w[p] = load_point<Point>(weights + p * Iq1Grid::dims);
    }
  }

  /// Chooses point p for a shift and adds what it contributes.
  int choose_point(int p, float scale, float delta, Fit& fit) const {
    const Iq1Grid& grid = Iq1Grid::instance();
    Point shifted = x[p];
    for (Lanes& part : shifted) part -= scale * delta;
    const int index = grid.nearest(shifted, w[p], scale);
    Point q = grid.point(index);
    for (Lanes& part : q) part += delta;
    add(fit, x[p], w[p], q, scale);
    return index;
  }

  /// Chooses points [first, last), and their common shift.
  void choose_some(int first, int last, float scale, Fit& fit) {
    Fit plus_fit, minus_fit;
    int plus_chosen[points], minus_chosen[points];
    for (int p = first; p < last; ++p) {
      plus_chosen[p] = choose_point(p, scale, iq1_delta, plus_fit);
      minus_chosen[p] = choose_point(p, scale, -iq1_delta, minus_fit);
    }
    const bool is_minus = minus_fit.error < plus_fit.error;
    for (int p = first; p < last; ++p) {
      chosen[p] = is_minus ? minus_chosen[p] : plus_chosen[p];
      minus[p] = is_minus;
    }
    const Fit& best = is_minus ? minus_fit : plus_fit;
    fit.error += best.error, fit.xq += best.xq, fit.qq += best.qq;
  }

  Fit choose(float scale) {
    Fit fit;
    if (each) {
      for (int p = 0; p < points; ++p) choose_some(p, p + 1, scale, fit);
    } else {
      choose_some(0, points, scale, fit);
    }
    return fit;
  }
};

/// How the scales of a format's groups are stored and searched: as odd multiples 1, 3, ... 2 levels - 1 of the block's. The largest value
/// of a group is taken for `highest` times first, first + step, ... in turn.
struct OddScales {
  int levels;
  float highest;
  float first, step;
  int trials;
};

/// The scale with which a group alone has the least error.
template <class Group>
float search_scale(Group& group, const OddScales& scales) {
  float largest = 0;
  for (const auto& point : group.x) {
    for (const Lanes& part : point) {
      for (int k = 0; k < lanes; ++k) largest = std::max(largest, std::fabs(part[k]));
    }
  }
  float best = 0, best_gain = 0;
  const auto consider = [&](float scale) {
    const Fit fit = group.choose(scale);
    if (fit.qq > 0 && fit.xq > 0 && fit.xq * fit.xq / fit.qq > best_gain) best_gain = fit.xq * fit.xq / fit.qq, best = fit.xq / fit.qq;
  };
  if (largest == 0) return 0;
  for (int i = 0; i < scales.trials; ++i) consider(largest / (scales.highest * (scales.first + scales.step * static_cast<float>(i))));
  for (int i = 0; i < 2; ++i) consider(best);
  return best;
}

/// Groups of a block whose scales are odd multiples of the block's.
template <class Group, int count>
struct OddlyScaled {
  Group groups[count];
  float wanted[count];
  int scales[count], best_scales[count];

  void load(const float* x, const float* w, const OddScales& format) {
    for (int g = 0; g < count; ++g) {
      groups[g].load(x + g * Group::size, w + g * Group::size);
      wanted[g] = search_scale(groups[g], format);
    }
  }

  /// For each group the scale with the least error of three next to the wanted one. Returns the sums with which the block's scale follows.
  Fit choose_scales(float unit, int levels) {
    Fit total;
    for (int g = 0; g < count; ++g) {
      const int near = unit == 0 ? 0 : static_cast<int>(std::lround(std::clamp((wanted[g] / unit - 1) / 2, -1.0f, 64.0f)));
      Fit best{std::numeric_limits<float>::max(), 0, 0};
      for (int level = std::clamp(near - 1, 0, levels - 1); level <= std::clamp(near + 1, 0, levels - 1); ++level) {
        const float multiple = static_cast<float>(2 * level + 1);
        const Fit fit = groups[g].choose(unit * multiple);
        if (fit.error < best.error) best = {fit.error, fit.xq * multiple, fit.qq * multiple * multiple}, scales[g] = level;
      }
      total.error += best.error, total.xq += best.xq, total.qq += best.qq;
    }
    return total;
  }

  /// Chooses all. `rounded(unit)` is the block's scale as it can be stored; returns the best of them, with which `choose` was called last.
  template <class Rounded>
  float search(const OddScales& format, Rounded rounded) {
    const float largest = *std::max_element(wanted, wanted + count);
    float best = 0, best_error = std::numeric_limits<float>::max();
    float unit = largest / static_cast<float>(2 * format.levels - 1);
    for (int round = 0; round < 3; ++round) {
      unit = rounded(unit);
      const Fit fit = choose_scales(unit, format.levels);
      if (fit.error < best_error) best_error = fit.error, best = unit, std::copy(scales, scales + count, best_scales);
      unit = fit.qq > 0 ? fit.xq / fit.qq : unit;
    }
    for (int g = 0; g < count; ++g) groups[g].choose(best * static_cast<float>(2 * best_scales[g] + 1));
    return best;
  }
};

/// Encodes a format whose f16 block scale is stored by put_scale(block, bits), `fraction` of which is what odd multiples count. A group is
/// stored by put_group(block, g, group, level of its scale).
template <class Scheme, class Group, class PutScale, class PutGroup>
void encode_points(const float* values, const float* importance, std::byte* blocks, std::int64_t count, const OddScales& scales,
                   float fraction, PutScale put_scale, PutGroup put_group) {
  constexpr int groups = Scheme::values / Group::size;
  encode_steps<Scheme, 1>(values, importance, blocks, count, [&](BlockStep<Scheme, 1>& block) {
    OddlyScaled<Group, groups> scaled;
    scaled.load(block.x, block.w, scales);
    const auto rounded = [&](float unit) { return block.inside(0, f16_value(block.f16_of(0, unit / fraction))) * fraction; };
    const float unit = scaled.search(scales, rounded);
    put_scale(block.block(0), block.f16_of(0, unit / fraction));
    for (int g = 0; g < groups; ++g) put_group(block.block(0), g, scaled.groups[g], scaled.best_scales[g]);
  });
}

void put_first(std::byte* block, std::uint16_t scale) { put(block, 0, scale); }

/// Four times seven signs, and the scale: of a group of 32 values.
std::uint32_t signs_and_scale(const std::uint8_t (&signs)[4], int level) {
  std::uint32_t bits = static_cast<std::uint32_t>(level) << 28;
  for (int i = 0; i < 4; ++i) bits |= (signs[i] & 127u) << (7 * i);
  return bits;
}

constexpr OddScales iq2_scales{16, 43, 0.7f, 0.2f, 8}, iq3_xxs_scales{16, 62, 0.8f, 0.13f, 8}, iq3_s_scales{16, 15, 0.8f, 0.13f, 8},
    iq1_scales{8, 1, 0.7f, 0.25f, 8};

}  // namespace

void IQ2_XXS::encode(const float* values, const float* importance, std::byte* blocks, std::int64_t count) {
  using Group = SignedGroup<Grid<iq2_xxs_grid, 8, 2, Iq2Values>, 4, true>;
  const auto put_group = [](std::byte* block, int g, const Group& group, int level) {
    for (int p = 0; p < 4; ++p) put(block, 2 + 8 * g + p, static_cast<std::uint8_t>(group.chosen[p]));
    put(block, 6 + 8 * g, signs_and_scale(group.signs, level));
  };
  encode_points<IQ2_XXS, Group>(values, importance, blocks, count, iq2_scales, 0.125f, put_first, put_group);
}

void IQ2_XS::encode(const float* values, const float* importance, std::byte* blocks, std::int64_t count) {
  using Group = SignedGroup<Grid<iq2_xs_grid, 8, 2, Iq2Values>, 2, true>;
  const auto put_group = [](std::byte* block, int g, const Group& group, int level) {
    for (int p = 0; p < 2; ++p) put(block, 2 + 2 * (2 * g + p), static_cast<std::uint16_t>(group.chosen[p] | (group.signs[p] & 127) << 9));
    put(block, scale_low(g), level);
  };
  encode_points<IQ2_XS, Group>(values, importance, blocks, count, iq2_scales, 0.125f, put_first, put_group);
}

void IQ2_S::encode(const float* values, const float* importance, std::byte* blocks, std::int64_t count) {
  using Group = SignedGroup<Grid<iq2_s_grid, 8, 2, Iq2Values>, 2, false>;
  const auto put_group = [](std::byte* block, int g, const Group& group, int level) {
    for (int p = 0; p < 2; ++p) {
      put(block, low(2 * g + p), group.chosen[p]);
      put(block, high(2 * g + p), group.chosen[p]);
      put(block, signs_at + 2 * g + p, group.signs[p]);
    }
    put(block, scale_low(g), level);
  };
  encode_points<IQ2_S, Group>(values, importance, blocks, count, iq2_scales, 0.125f, put_first, put_group);
}

void IQ3_XXS::encode(const float* values, const float* importance, std::byte* blocks, std::int64_t count) {
  using Group = SignedGroup<Grid<iq3_xxs_grid, 4, 4, Iq3XxsValues>, 8, true>;
  const auto put_group = [](std::byte* block, int g, const Group& group, int level) {
    for (int p = 0; p < 8; ++p) put(block, 2 + 8 * g + p, static_cast<std::uint8_t>(group.chosen[p]));
    put(block, 66 + 4 * g, signs_and_scale(group.signs, level));
  };
  encode_points<IQ3_XXS, Group>(values, importance, blocks, count, iq3_xxs_scales, 0.25f, put_first, put_group);
}

void IQ3_S::encode(const float* values, const float* importance, std::byte* blocks, std::int64_t count) {
  using Group = SignedGroup<Grid<iq3_s_grid, 4, 4, Iq3SValues>, 8, false>;
  const auto put_group = [](std::byte* block, int g, const Group& group, int level) {
    for (int p = 0; p < 8; ++p) {
      put(block, low(8 * g + p), group.chosen[p]);
      put(block, high(8 * g + p), group.chosen[p]);
    }
    for (int i = 0; i < 4; ++i) put(block, signs_at + 4 * g + i, group.signs[i]);
    put(block, scale_low(g), level);
  };
  encode_points<IQ3_S, Group>(values, importance, blocks, count, iq3_s_scales, 1.0f, put_first, put_group);
}

void IQ1_S::encode(const float* values, const float* importance, std::byte* blocks, std::int64_t count) {
  using Group = ShiftedGroup<4, false>;
  const auto put_group = [](std::byte* block, int g, const Group& group, int level) {
    int high = level << 12 | static_cast<int>(group.minus[0]) << 15;
    for (int p = 0; p < 4; ++p) {
      put(block, 2 + 4 * g + p, static_cast<std::uint8_t>(group.chosen[p]));
      high |= group.chosen[p] >> 8 << (3 * p);
    }
    put(block, high_at + 2 * g, static_cast<std::uint16_t>(high));
  };
  encode_points<IQ1_S, Group>(values, importance, blocks, count, iq1_scales, 1.0f, put_first, put_group);
}

void IQ1_M::encode(const float* values, const float* importance, std::byte* blocks, std::int64_t count) {
  using Group = ShiftedGroup<2, true>;
  const auto put_group = [](std::byte* block, int g, const Group& group, int level) {
    for (int p = 0; p < 2; ++p) {
      put(block, low(2 * g + p), group.chosen[p]);
      put(block, high(2 * g + p), group.chosen[p]);
      put(block, minus(2 * g + p), static_cast<int>(group.minus[p]));
    }
    const int word = scales_at + g / 4 * 2;
    put(block, word, static_cast<std::uint16_t>(BlockBytes{block}.u16(word) | level << (g % 4 * 3)));
  };
  const auto put_scale = [](std::byte* block, std::uint16_t scale) {
    for (int i = 0; i < 4; ++i) put(block, BitField{scales_at + 2 * i + 1, 4, 4, 0}, scale >> (4 * i));
  };
  encode_points<IQ1_M, Group>(values, importance, blocks, count, iq1_scales, 1.0f, put_scale, put_group);
}

}  // namespace rlx::quant
