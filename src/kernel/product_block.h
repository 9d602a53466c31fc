#pragma once
#include <array>
#include <optional>
#include <set>
#include <vector>

#include "kernel/kernel.h"

namespace rlx {

/// Sums in f32 of products of two loads of f32, f16 or bf16, of which a thread computes a block of neighbours: what it loads is used for a
/// row or a column of them, and the sums stay in registers.
struct ProductBlock {
  struct Sum {
    ExprId id;
    std::array<ExprId, 2> factors;  // loads; the first is the same in all columns, the second in all rows
  };
  std::vector<Sum> sums;      // over the same terms
  int row = -1, column = -1;  // loops; row -1: there is one
  int terms = -1;             // the variable of the sums
  int rows = 1, columns = 1;  // of the block
  bool along_terms = true;    // vectors are of neighbouring terms, and added up at the end; else they are the columns
};

/// The block in which a kernel computes its reductions, where all are such sums. `width`: elements of a vector.
std::optional<ProductBlock> product_block(const Kernel& kernel, const std::vector<std::set<int>>& free, int width);

/// Where sums of i32 are of codes, which neighbouring bytes have and from which a number is taken, times numbers of 8 bits that all lanes
/// share: a loop adds four of their terms at a time. Bytes of neighbouring lanes lie side by side, those of the next term behind these.
struct DotLanes {
  int lane, terms, width;  // the variables, and how many lanes a vector has
};
struct DotSum {
  ExprId code, x;     // x: the load
  std::int64_t less;  // what is taken from the code; both together are below 128, so that 16 bits hold two products
};
bool is_dot_code(const Kernel& kernel, const std::vector<std::set<int>>& free, ExprId code, const DotLanes& lanes);
std::optional<DotSum> dot_sum(const Kernel& kernel, const std::vector<std::set<int>>& free, ExprId sum, const DotLanes& lanes);

}  // namespace rlx
