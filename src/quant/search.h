#pragma once
#include "quant/search_lanes.h"

// Searches for the scales of groups of values, by weighted least squares: what all encoders have in common.

namespace rlx::quant {

/// Groups of `size` values: lane g of x[i] is value i of group g.
template <int size>
struct Tile {
  Lanes x[size], w[size];

  /// From groups that lie one after the other.
  void load(const float* values, const float* weights) {
    for (int i = 0; i < size; ++i) {
      for (int g = 0; g < lanes; ++g) x[i][g] = values[g * size + i], w[i][g] = weights[g * size + i];
    }
  }
};

/// Sums over a group whose values x are approximated by codes q: their products, weighted.
struct Sums {
  Lanes xq{}, qq{};
};

template <class Lattice, int size>
Sums sums_at(const Tile<size>& tile, Lanes inverse_scale) {
  Sums sums;
  for (int i = 0; i < size; ++i) {
    const Lanes q = Lattice::value(tile.x[i] * inverse_scale), wq = tile.w[i] * q;
    sums.xq += wq * tile.x[i];
    sums.qq += wq * q;
  }
  return sums;
}

/// The weighted squared error with the nearest codes at a scale.
template <class Lattice, int size>
Lanes error_at(const Tile<size>& tile, Lanes scale) {
  const Lanes inverse_scale = inverse(scale);
  Lanes error{};
  for (int i = 0; i < size; ++i) {
    const Lanes difference = tile.x[i] - scale * Lattice::value(tile.x[i] * inverse_scale);
    error += tile.w[i] * difference * difference;
  }
  return error;
}

/// Which scales a search tries first: the value of largest magnitude is taken for the lattice's ends times first, first + step, ...
struct Trials {
  float first, step;
  int count;
};

/// The scale, of either sign, with the least error among many.
template <class Lattice, int size>
[[gnu::flatten]] Lanes search_scale(const Tile<size>& tile, const Trials& trials, int refinements = 2) {
  Lanes extreme{}, best_gain{}, best{};
  for (const Lanes& x : tile.x) extreme = magnitude(x) > magnitude(extreme) ? x : extreme;
  const Lanes inverse_extreme = inverse(extreme);
  const auto consider = [&](Lanes inverse_scale) {
    const Sums sums = sums_at<Lattice>(tile, inverse_scale);
    const Lanes scale = ratio(sums.xq, sums.qq), gain = scale * sums.xq;  // by how much the best scale of these codes lowers the error
    best = gain > best_gain ? scale : best;
    best_gain = larger(gain, best_gain);
  };
  for (int i = 0; i < trials.count; ++i) {
    const float share = trials.first + trials.step * static_cast<float>(i);
    consider(inverse_extreme * (Lattice::lowest * share));
    consider(inverse_extreme * (Lattice::highest * share));
  }
  for (int i = 0; i < refinements; ++i) consider(inverse(best));
  return best;
}

/// A group's values x are approximated by scale q + offset.
struct Line {
  Lanes scale{}, offset{};
};

/// Weighted sums over a group: what the best line for given codes depends on.
struct LineSums {
  Lanes w{}, x{}, q{}, xq{}, qq{};

  /// By how much a line lowers the error from that of zeros.
  Lanes gain(const Line& line) const {
    return 2.0f * (line.scale * xq + line.offset * x) - line.scale * line.scale * qq -
           line.offset * (2.0f * line.scale * q + line.offset * w);
  }
};

/// The line of least error for codes that are given, with a scale of at least 0. Where it would lie above `highest` at q = 0, the best that
/// does not.
inline Line fit_line(const LineSums& sums, Lanes highest) {
  const Lanes determinant = sums.w * sums.qq - sums.q * sums.q;
  const auto flat = determinant <= 0.0f;  // one code for all
  Line line{ratio(sums.w * sums.xq - sums.x * sums.q, determinant), ratio(sums.qq * sums.x - sums.q * sums.xq, determinant)};
  line.offset = flat ? ratio(sums.x, sums.w) : line.offset;
  const auto high = line.offset > highest;
  line.offset = high ? highest : line.offset;
  line.scale = high ? ratio(sums.xq - highest * sums.q, sums.qq) : line.scale;
  line.scale = larger(line.scale, Lanes{});
  return line;
}

/// Adds the sums for the nearest codes on a line to those that do not depend on codes.
template <class Lattice, int size>
LineSums line_sums(const Tile<size>& tile, const Line& line, LineSums sums) {
  const Lanes inverse_scale = inverse(line.scale);
  for (int i = 0; i < size; ++i) {
    const Lanes q = Lattice::value((tile.x[i] - line.offset) * inverse_scale), wq = tile.w[i] * q;
    sums.q += wq;
    sums.xq += wq * tile.x[i];
    sums.qq += wq * q;
  }
  return sums;
}

template <int size>
LineSums sums_without_codes(const Tile<size>& tile) {
  LineSums sums;
  for (int i = 0; i < size; ++i) sums.w += tile.w[i], sums.x += tile.w[i] * tile.x[i];
  return sums;
}

template <class Lattice, int size>
Lanes error_at(const Tile<size>& tile, const Line& line) {
  const Lanes inverse_scale = inverse(line.scale);
  Lanes error{};
  for (int i = 0; i < size; ++i) {
    const Lanes difference = tile.x[i] - (line.scale * Lattice::value((tile.x[i] - line.offset) * inverse_scale) + line.offset);
    error += tile.w[i] * difference * difference;
  }
  return error;
}

/// Which lines a search tries first: all pairs of a lower end raised and an upper end lowered by cut times 0, 1, ... of the range of
/// values, each refined by taking the nearest codes and the best line for them in turn.
struct LineTrials {
  float cut;
  int cuts, refinements;
};

/// The line with the least error among many, whose offset is at most `highest`.
template <class Lattice, int size>
[[gnu::flatten]] Line search_line(Tile<size> tile, Lanes highest, const LineTrials& trials) {
  Lanes least = tile.x[0], most = tile.x[0];
  for (const Lanes& x : tile.x) least = smaller(least, x), most = larger(most, x);
  least = smaller(least, highest);
  for (Lanes& x : tile.x) x -= least;  // sums of squares of what differs, not of what is common
  const Lanes range = larger(most - least, Lanes{}), part = range * trials.cut;
  highest -= least;
  const LineSums start = sums_without_codes(tile);
  Line best;
  Lanes best_gain{};
  for (int i = 0; i < trials.cuts * trials.cuts; ++i) {
    const int below = i / trials.cuts, above = i % trials.cuts;
    const Lanes low = smaller(part * static_cast<float>(below), highest);
    Line line{larger(range - part * static_cast<float>(above) - low, Lanes{}) * (1 / Lattice::highest), low};
    for (int k = 0; k < trials.refinements; ++k) {
      const LineSums sums = line_sums<Lattice>(tile, line, start);
      line = fit_line(sums, highest);
      const Lanes gain = sums.gain(line);
      const auto better = gain > best_gain;
      best.scale = better ? line.scale : best.scale;
      best.offset = better ? line.offset : best.offset;
      best_gain = larger(gain, best_gain);
    }
  }
  best.offset += least;
  return best;
}

}  // namespace rlx::quant
