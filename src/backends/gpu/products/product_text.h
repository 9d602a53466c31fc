#pragma once
#include "backends/gpu/products/product.h"
#include "emit/cuda_function.h"
#include "lowering/target.h"

namespace rlx::gpu {

/// How a block of threads computes tiles.
struct TileForm {
  /// Sums of f32 in registers; matrix units of warps; those of groups of warps, to which a copy engine brings panels.
  enum class Kind : std::uint8_t { f32, warps, groups };
  Kind kind;
  int rows, columns;
  int stages;   // of panels on their way to a tile
  int slices;   // of the depth, whose sums are added at the end
  double rate;  // of a unit that computes such tiles, relative to others
};

/// The forms in which a device can compute the product.
std::vector<TileForm> tile_forms(const Product& product, const Caps& caps);

/// The loops of a product's results, in the order of kernels that compute it: items, rows, columns.
struct ProductLoops {
  std::vector<int> items;
  int row, column;
  int block = -1;  // of blocks that compute one tile after the other, as many as units
};

/// A size as an expression of a kernel's symbols, which are its last arguments but one.
std::string size_text(const Dim& dim, const std::vector<std::string>& symbols);

/// The kernel whose `whole` says what is computed, by tiles. `epilogue`: see product_epilogue. Its buffers are among those of `whole`, but
/// for the sum that it reads.
KernelText product_text(const Product& product, const TileForm& form, const Kernel& whole, const ProductLoops& loops,
                        const Kernel& epilogue);

}  // namespace rlx::gpu
