#pragma once
#include <map>

#include "lowering/program.h"
#include "quant/block_format.h"

namespace rlx::gpu {

/// How blocks of threads compute tiles of a product with weights in blocks, as block_tiles.h has it.
struct BlockForm {
  int rows, columns;
  int stages;  // of what is on its way to a tile
  int slices;  // of the depth, whose sums are added at the end
};

/// x W^T, where W has rows of blocks.
struct BlockProduct {
  const BlockFormat& format;
  std::map<const void*, ValueId> tables;
  ValueId left, blocks, result;
  DType dtype;  // of the result
  int pieces;   // of a number on the left, which is a sum of numbers of bf16: all first pieces, then all second ones
  Dim rows;
  std::int64_t columns, depth;
  Dim offset, stride;  // of W's rows, in bytes
  std::vector<std::string> symbols;
};

GeneratedKernel block_product_kernel(const BlockProduct& product, const BlockForm& form);

}  // namespace rlx::gpu
