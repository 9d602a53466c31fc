#pragma once
#include <array>
#include <map>
#include <optional>
#include <set>

#include "backends/cpu/gemm/micro_kernels/micro_kernel.h"
#include "backends/cpu/machine/cpu_features.h"
#include "lowering/products/product_axes.h"

namespace rlx::cpu {

/// A dot as the matrix product kernels take it: C (batch, m, n) = A (batch, m, k) * B (batch, k, n) over strided operands.
/// `rows` and `columns` are single axes; what did not merge into them is part of `batch`, or in `row_axes`.
struct Product {
  DType element = f32;      // of the panels: the dot's, or the narrower one whose numbers both operands are, or the right one
  bool float_left = false;  // the left operand is f32 beside narrower elements
  ValueId dot, result;      // result: the value that is stored (the dot, or the end of its epilogue)
  ValueId a, b;             // the stored values that are read
  Dim a_offset, b_offset, c_offset;
  std::vector<ProductAxis> batch;
  ProductAxis rows{1, 0, 0, 0}, columns{1, 0, 0, 0}, depth{1, 0, 0, 0};
  std::vector<ProductAxis> row_axes, depth_axes;  // where those do not merge, as in a convolution: A is then read through tables of offsets
  bool b_by_tables = false;                       // B too: its strides along depth_axes do not merge
  std::vector<Kernel> parts;                      // under way: those that become kernels of the launch
  std::optional<std::size_t> prologue;  // of them; tile loops: batch (flat), rows, depth; computes `a`, which is not stored, in blocks
  std::optional<std::size_t> epilogue;  // tile loops: batch (flat), rows, columns; reads the tile as the dot's buffer
  bool prologue_by_columns = false;     // rows are its innermost loop: they lie side by side in `a`
  bool winograd = false;                // a convolution that gemm/winograd.h computes
  bool dots = false;                    // few columns and long rows, for gemm/dot_products.h
  std::optional<ValueId> packed;        // `b` as kernels read it: see packing.h
  bool epilogue_by_columns = false;     // rows are its innermost loop and the tile is transposed: they lie side by side in the result

  DType sum() const { return element == bf16 || element == f16 ? f32 : element == i8 ? i32 : element; }
  double flops(const Graph& graph, const Bindings& bindings) const;
};

/// The narrow values that a dot multiplies. Nothing unless the level multiplies such elements without widening them in memory, bf16 and f32
/// by bf16 or f16 into f32, i8 into i32, and finds them in an order that makes a product.
std::optional<NarrowOperands> narrow_operands(const Graph& graph, ValueId dot, CpuLevel level);

/// Tries to see `dot` as a product whose operands are strided views of stored values, or of their narrow_operands. Nothing when an operand
/// is computed or its index is not linear: that operand must be stored first (`blocker` says which).
std::optional<Product> as_product(const Graph& graph, ValueId dot, CpuLevel level, const Puller::IsStored& is_stored, ValueId& blocker);

/// Rows of a dot's left operand in each item of its batch, or columns of the right one: how often each element of the other is read.
Dim free_elements(const Graph& graph, const Node& dot, std::size_t side);
/// Whether a dot has one column, or so few rows, that reading an operand once takes longest, while a product would pack it first.
/// `weights`: whether its right operand may be the same in every run.
bool is_bound_by_reading(const Graph& graph, const Node& dot, bool weights);
/// Whether its columns are known to be so few, and its rows so long, as dot products take them.
bool has_few_columns(const Graph& graph, const Node& dot);

/// Whether a whole product is a convolution that gemm/winograd.h computes, and faster: with kernels of 3 x 3 and stride 1, channels side by
/// side.
bool suits_winograd(const Product& product);
/// Whether a whole product is one for gemm/dot_products.h: its columns are known to be few, and its rows long, in every run.
bool suits_dots(const Product& product, CpuLevel level);

}  // namespace rlx::cpu
