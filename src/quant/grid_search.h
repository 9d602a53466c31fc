#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "quant/lattice.h"
#include "quant/search_lanes.h"

// The nearest point of a grid, where coordinates are weighted differently.

namespace rlx::quant {

/// A grid whose points are the numbers of their coordinates' values, `bits` bits each; `Values::values` are those values, rising.
template <const auto& packed, int dimension, int bits, class Values>
class Grid {
 public:
  static constexpr int dims = dimension, parts = dims / lanes;
  static constexpr std::size_t points = packed.size();
  using Point = std::array<Lanes, parts>;  // one number a coordinate

  /// The grid, whose tables are made on the first call.
  static const Grid& instance() {
    static const Grid grid;
    return grid;
  }

  const Point& point(int index) const { return points_[static_cast<std::size_t>(index)]; }

  /// The index of the point g with the least sum of w (x - scale g)^2 among those near the nearest point of the whole lattice.
  int nearest(const Point& x, const Point& w, float scale) const {
    const std::uint16_t* const near = &near_[lattice_index(x, scale) * candidates];
    if (exact_[static_cast<std::size_t>(near - near_.data()) / candidates]) return near[0];
    float least = std::numeric_limits<float>::max();
    int best = near[0];
    for (std::size_t c = 0; c < candidates; ++c) {
      Lanes error{};
      for (std::size_t p = 0; p < parts; ++p) {
        const Lanes difference = x[p] - scale * points_[near[c]][p];
        error += w[p] * difference * difference;
      }
      const float sum = (error[0] + error[1]) + (error[2] + error[3]);
      best = sum < least ? near[c] : best;
      least = sum < least ? sum : least;
    }
    return best;
  }

 private:
  static constexpr std::size_t candidates = 24;
  static constexpr std::size_t levels = Values::values.size();
  static constexpr std::size_t lattice_points = [] {
    std::size_t count = 1;
    for (int k = 0; k < dims; ++k) count *= levels;
    return count;
  }();

  /// The number, to base `levels`, whose digits are the numbers of the nearest values.
  static std::size_t lattice_index(const Point& x, float scale) {
    const float inverse_scale = scale == 0 ? 0 : 1 / scale;
    Lanes index{};
    float digit = 1;
    for (std::size_t p = 0; p < parts; ++p) {
      Lanes weights{};
      for (int k = 0; k < lanes; ++k, digit *= static_cast<float>(levels)) weights[k] = digit;
      index += weights * Rising<Values>::code(x[p] * inverse_scale);
    }
    return static_cast<std::size_t>((index[0] + index[1]) + (index[2] + index[3]));
  }

  Grid() : points_(points), near_(lattice_points * candidates), exact_(lattice_points) {
    for (std::size_t i = 0; i < points; ++i) {
      for (int k = 0; k < dims; ++k) {
        const auto value = static_cast<std::size_t>(packed[i] >> (k * bits) & ((1 << bits) - 1));
        points_[i][static_cast<std::size_t>(k / lanes)][k % lanes] = Values::values[value];
      }
    }
    for (std::size_t i = 0; i < lattice_points; ++i) find_near(i);
  }

  /// The candidates of a point of the lattice: the nearest of the grid.
  void find_near(std::size_t lattice_point) {
    Point center;
    for (std::size_t k = 0, rest = lattice_point; k < dims; ++k, rest /= levels)
      center[k / lanes][k % lanes] = Values::values[rest % levels];
    std::array<std::pair<float, std::uint16_t>, points> distances;
    for (std::size_t i = 0; i < points; ++i) {
      Lanes square{};
      for (std::size_t p = 0; p < parts; ++p) square += (points_[i][p] - center[p]) * (points_[i][p] - center[p]);
      distances[i] = {(square[0] + square[1]) + (square[2] + square[3]), static_cast<std::uint16_t>(i)};
    }
    std::partial_sort(distances.begin(), distances.begin() + candidates, distances.end());
    exact_[lattice_point] = distances[0].first == 0;
    for (std::size_t c = 0; c < candidates; ++c) near_[lattice_point * candidates + c] = distances[c].second;
  }

  std::vector<Point> points_;
  std::vector<std::uint16_t> near_;
  std::vector<char> exact_;  // whether the lattice's point is one of the grid
};

}  // namespace rlx::quant
