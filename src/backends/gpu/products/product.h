#pragma once
#include <optional>

#include "lowering/products/product_axes.h"

namespace rlx::gpu {

/// A dot as blocks of threads multiply it: by items, matrices of rows and columns, along one axis of both operands.
struct Product {
  DType element = f32;  // that both operands have in memory: the dot's, or the narrower one that it is widened from
  ValueId dot;
  View a, b;
  std::vector<ProductAxis> items;
  ProductAxis rows{1, 0, 0, 0}, columns{1, 0, 0, 0}, depth{1, 0, 0, 0};

  DType sum() const { return element == i8 ? i32 : f32; }
  /// Whether neighbours of an operand in memory are neighbours along the depth; else they are rows, or columns.
  bool a_along_depth() const { return depth.a_stride == Dim(1) || depth.extent == Dim(1); }
  bool b_along_depth() const { return depth.b_stride == Dim(1) || depth.extent == Dim(1); }
  /// The distance between neighbours along the other axis.
  const Dim& a_stride() const { return a_along_depth() ? rows.a_stride : depth.a_stride; }
  const Dim& b_stride() const { return b_along_depth() ? columns.b_stride : depth.b_stride; }
};

/// The narrow values that a dot multiplies, where matrix units do.
std::optional<NarrowOperands> narrow_operands(const Graph& graph, ValueId dot);

/// Tries to see the dot as a product of stored values. Nothing where an operand is computed or lies otherwise: `blocker` is to be stored
/// first.
std::optional<Product> as_product(const Graph& graph, ValueId dot, const Puller::IsStored& is_stored, ValueId& blocker);

}  // namespace rlx::gpu
