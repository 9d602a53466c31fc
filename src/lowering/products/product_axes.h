#pragma once
#include <array>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "lowering/products/strided_view.h"

// A dot as matrices that code written by hand multiplies: its axes with their strides in memory.

namespace rlx {

/// One axis of a matrix product with its strides, in elements, in the two operands and the result.
struct ProductAxis {
  Dim extent;
  Dim a_stride, b_stride, c_stride;
};

using Stride = Dim ProductAxis::*;
inline constexpr Stride all_strides[] = {&ProductAxis::a_stride, &ProductAxis::b_stride, &ProductAxis::c_stride};

/// Two neighbouring axes are one when every stride of the outer is the inner's times its extent.
bool merges(const ProductAxis& outer, const ProductAxis& inner, std::span<const Stride> strides = all_strides);
/// Merges axes from the innermost outwards into `single`; those that do not fit are left in `rest`.
void merge_axes(std::vector<ProductAxis> axes, ProductAxis& single, std::vector<ProductAxis>& rest);

/// The elements that a dot multiplies, by variables for the axes of its result and for its depth.
struct DotReading {
  Kernel kernel;
  std::vector<int> axis_variables;  // of the result; -1 where the extent is 1
  std::vector<int> depth_variables;
  std::array<ExprId, 2> factors{};
};
DotReading read_dot(const Graph& graph, ValueId dot, const Puller::IsStored& is_stored);

/// A factor as a view; of narrow operands, what its cast widens.
std::optional<View> view_of(const DotReading& reading, std::size_t side, bool is_narrow);

/// The axes of a product before they are merged.
struct ProductAxes {
  std::vector<ProductAxis> batch, rows, columns, depth;
};
ProductAxes axes_of(const Type& result, const DotReading& reading, const View& a, const View& b);

/// The values that the operands of a dot are widened from by a cast, perhaps rearranged after it: both, or the right one.
struct NarrowOperands {
  DType element;
  bool widens_left;  // else the left value is the operand itself
  std::array<ValueId, 2> values;
  std::set<ValueId> widened;  // the casts and what rearranges them
};
/// Nothing where it multiplies no such elements.
std::optional<NarrowOperands> widened_operands(const Graph& graph, ValueId dot, DType element, bool widens_left);

}  // namespace rlx
