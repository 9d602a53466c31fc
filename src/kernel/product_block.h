#pragma once
#include <array>
#include <optional>
#include <set>

#include "kernel/kernel.h"

namespace rlx {

/// A sum in f32 of products of two loads of f32, f16 or bf16, of which a thread computes a block of neighbours: what it loads is used for a
/// row or a column of them, and the sums stay in registers.
struct ProductBlock {
  ExprId sum = -1;
  std::array<ExprId, 2> factors{};  // loads; the first is the same in all columns, the second in all rows
  int row = -1, column = -1;        // loops; row -1: there is one
  int terms = -1;                   // the sum's variable
  int rows = 1, columns = 1;        // of the block
  bool along_terms = true;          // vectors are of neighbouring terms, and added up at the end; else they are the columns
};

/// The block in which a kernel computes its only reduction, where that is such a sum. `width`: elements of a vector.
std::optional<ProductBlock> product_block(const Kernel& kernel, const std::vector<std::set<int>>& free, int width);

}  // namespace rlx
