#pragma once
#include <map>
#include <optional>
#include <vector>

#include "kernel/pull.h"

namespace rlx {

/// Elements of a stored value as kernels written by hand read them: where each loop variable moves by a stride.
struct View {
  ValueId value;
  DType dtype;
  Dim offset;
  std::map<int, Dim> strides;  // by variable

  Dim stride(int variable) const;  // 0 where it does not move
};

/// One element of a shape: an index for each axis, by a new variable of the kernel.
std::vector<Index> element_variables(Kernel& kernel, const Dims& shape);

/// The expression as a strided read of a stored value; nothing for what is computed, or read at places that are not linear.
std::optional<View> as_view(const Kernel& kernel, ExprId id);

/// Where element `at` of the operand goes in the result of a structure op that only renames elements: the same flat position, or a
/// permutation of the axes. Nothing for any other op.
std::optional<std::vector<Index>> follow(const Graph& graph, const Node& node, const std::vector<Index>& at);

}  // namespace rlx
