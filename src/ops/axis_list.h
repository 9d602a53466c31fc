#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

namespace rlx {

/// Whether `axis` is one of those that dimension numbers name.
inline bool contains(const std::vector<std::int64_t>& axes, std::int64_t axis) {
  return std::find(axes.begin(), axes.end(), axis) != axes.end();
}

}  // namespace rlx
