#pragma once
#include <map>
#include <optional>

#include "lowering/program.h"
#include "quant/block_format.h"

namespace rlx::gpu {

/// How blocks of threads compute tiles of a product with weights in blocks, as block_tiles.h has it.
struct BlockForm {
  int rows, columns;
  int stages;  // of what is on its way to a tile
  int slices;  // of the depth, whose sums are added at the end
};

/// Of several matrices side by side: each row on the left is multiplied with one.
struct BlockMatrices {
  ValueId number, sorted;  // of the matrix of each row; rows by matrix, and behind them where each matrix's begin, see sorting_kernel
  DType number_type;
  Dim rows;
  std::int64_t count;
  Dim stride;
};

/// x W^T, where W has rows of blocks.
struct BlockProduct {
  const BlockFormat& format;
  std::map<const void*, ValueId> tables;
  ValueId left = {}, blocks = {}, result = {};
  DType dtype = f32;  // of the result
  int pieces = 2;     // of a number on the left, which is a sum of numbers of bf16: all first pieces, then all second ones
  Dim rows = {};
  std::int64_t columns = 0, depth = 0;
  Dim offset = {}, stride = {};  // of W's rows, in bytes
  std::vector<std::string> symbols = {};
  std::optional<BlockMatrices> matrices = {};  // then rows on the left lie in the order that is sorted
};

/// Sorts the rows, which a few lanes do in less time than a launch takes.
GeneratedKernel sorting_kernel(const BlockMatrices& matrices, const std::vector<std::string>& symbols);

/// Each block begins at a multiple of so many bytes, up to 16.
int bound_of_blocks(const BlockProduct& product);

GeneratedKernel block_product_kernel(const BlockProduct& product, const BlockForm& form);

}  // namespace rlx::gpu
