#pragma once
#include <cstdint>

namespace rlx::cpu {

/// Where to find a (lanes, depth) piece of a matrix of any layout: element (lane, k) is data[lane * lane_stride + k * depth_stride].
template <class T>
struct Strided {
  const T* data;
  std::int64_t lane_stride;
  std::int64_t depth_stride;
};

/// Fills the panel `to` (depth, width): its row k holds `lanes` values of step k, then zeros. Lanes are rows of A or columns of B.
template <class T>
void pack_panel(const Strided<T>& from, std::int64_t lanes, std::int64_t depth, T* to, std::int64_t width);

}  // namespace rlx::cpu
