#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

namespace rlx::cpu {

/// Which matrix of weights each row of x is multiplied with: the rows of one matrix are a group.
struct RowGroups {
  struct Group {
    std::int64_t matrix = 0, begin = 0, count = 0;  // rows order[begin..]
  };
  std::vector<Group> groups;        // those with rows
  std::vector<std::int64_t> order;  // of the rows, group after group; empty: as they lie

  /// All rows with one matrix.
  static RowGroups one(std::int64_t rows) { return {rows > 0 ? std::vector<Group>{{0, 0, rows}} : std::vector<Group>{}, {}}; }

  /// Row i with matrix chosen(i), clamped to 0..matrices - 1.
  template <class Chosen>
  static RowGroups by_matrix(std::int64_t rows, std::int64_t matrices, const Chosen& chosen) {
    std::vector<std::int64_t> ends(static_cast<std::size_t>(matrices) + 1);
    const auto matrix_of = [&](std::int64_t row) {
      return static_cast<std::size_t>(std::clamp<std::int64_t>(chosen(row), 0, matrices - 1));
    };
    for (std::int64_t row = 0; row < rows; ++row) ++ends[matrix_of(row) + 1];
    RowGroups all;
    for (std::size_t m = 0; m < static_cast<std::size_t>(matrices); ++m) {
      if (ends[m + 1] > 0) all.groups.push_back({static_cast<std::int64_t>(m), ends[m], ends[m + 1]});
      ends[m + 1] += ends[m];
    }
    all.order.resize(static_cast<std::size_t>(rows));
    for (std::int64_t row = 0; row < rows; ++row) all.order[static_cast<std::size_t>(ends[matrix_of(row)]++)] = row;
    return all;
  }

  std::int64_t row(std::int64_t i) const { return order.empty() ? i : order[static_cast<std::size_t>(i)]; }
  std::int64_t rows() const { return groups.empty() ? 0 : groups.back().begin + groups.back().count; }
  std::int64_t largest() const {
    std::int64_t most = 0;
    for (const Group& group : groups) most = std::max(most, group.count);
    return most;
  }

  /// `count` rows of x (rows, k) from order[begin] on: where they lie, or copied to `scratch` (count, k) where they lie apart.
  const float* gathered(const float* x, std::int64_t k, std::int64_t begin, std::int64_t count, float* scratch) const {
    if (order.empty()) return x + begin * k;
    for (std::int64_t i = 0; i < count; ++i) std::copy_n(x + row(begin + i) * k, k, scratch + i * k);
    return scratch;
  }
};

/// Some rows that one tile computes.
struct RowTile {
  std::int64_t begin = 0, count = 0;
};

/// All groups in tiles of up to `most` rows, in order.
inline std::vector<RowTile> tiles_of(const RowGroups& rows, std::int64_t most) {
  std::vector<RowTile> tiles;
  for (const RowGroups::Group& group : rows.groups)
    for (std::int64_t i = 0; i < group.count; i += most) tiles.push_back({group.begin + i, std::min(most, group.count - i)});
  return tiles;
}

}  // namespace rlx::cpu
