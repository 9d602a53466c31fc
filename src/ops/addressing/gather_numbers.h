#pragma once
#include <limits>
#include <optional>

#include "ir/op.h"

namespace rlx {

/// Throws Error naming `op` unless the numbers fit an operand, its indices and a result (scatter: updates) of rank `result_rank`.
void check_numbers(std::string_view op, const GatherNumbers& numbers, const Type& x, const Type& indices, int result_rank);

/// Operand axes that a window spans: neither collapsed nor batching. The k-th belongs to result axis offset_dims[k].
std::vector<std::int64_t> window_axes(const GatherNumbers& numbers, int operand_rank);

/// Result axes that enumerate windows, in the order of the axes of the indices.
std::vector<std::int64_t> batch_axes(const GatherNumbers& numbers, int result_rank);

/// The numbers after a batch axis was put in front of the result and of the operand, the indices, or both.
GatherNumbers batched_numbers(const GatherNumbers& numbers, bool operand, bool indices);

/// Finds, on the host, the operand element that an element of the result (scatter: of the updates) stands for.
class WindowPositions {
 public:
  /// `window` has the size of a window along each operand axis.
  WindowPositions(const GatherNumbers& numbers, const Array& x, const Array& indices, std::vector<std::int64_t> window, IndexMode mode,
                  int result_rank);
  /// Row-major position in the operand; nothing where the window is not wholly inside and the mode is fill.
  std::optional<std::int64_t> find(const std::vector<std::int64_t>& at) const;

 private:
  GatherNumbers numbers_;
  std::vector<std::int64_t> shape_;
  const Array& indices_;
  std::vector<std::int64_t> window_;
  IndexMode mode_;
  std::vector<std::int64_t> batch_axes_, window_axes_;
};

/// The integer of an array of any integer type; of u64, what i64 does not hold is its largest number.
inline std::int64_t saturated_int(const Array& x, std::int64_t i) {
  const std::int64_t value = x.get_int(i);
  return value < 0 && is_unsigned_int(x.dtype()) ? std::numeric_limits<std::int64_t>::max() : value;
}

/// Python's rule: an index below 0 counts once from the end of an axis of `size`. The result is wide enough for any position of the axis.
Value wrap_negative(Value indices, const Dim& size);

/// Advances a row-major position by one element.
inline void advance(std::vector<std::int64_t>& at, const std::vector<std::int64_t>& shape) {
  for (std::size_t d = at.size(); d-- > 0 && ++at[d] == shape[d];) at[d] = 0;
}

}  // namespace rlx
