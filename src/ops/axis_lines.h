#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

namespace rlx {

/// Which elements of an array lie along one axis, one line of them after the other.
struct AxisLines {
  std::int64_t count = 1, length = 0, stride = 1;

  AxisLines(std::span<const std::int64_t> shape, std::int64_t axis) : length(shape[static_cast<std::size_t>(axis)]) {
    for (std::int64_t d = 0; d < static_cast<std::int64_t>(shape.size()); ++d) {
      if (d == axis) continue;
      count *= shape[static_cast<std::size_t>(d)];
      if (d > axis) stride *= shape[static_cast<std::size_t>(d)];
    }
    if (length == 0) count = 0;
  }
  /// Where the first element of a line lies.
  std::int64_t begin(std::int64_t line) const { return line / stride * length * stride + line % stride; }
};

}  // namespace rlx
