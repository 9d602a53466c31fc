#pragma once
#include "backends/gpu/products/product.h"
#include "emit/cuda_function.h"

namespace rlx::gpu {

/// How much a block of threads computes.
struct TileForm {
  int rows, columns;
  int stages;  // of panels on their way to a tile; 0: of f32, without matrix units
};

/// The loops of a product's results, in the order of kernels that compute it: items, rows, columns.
struct ProductLoops {
  std::vector<int> items;
  int row, column;
};

/// The kernel whose `whole` says what is computed, by tiles. `epilogue`: see product_epilogue. Its buffers are among those of `whole`, but
/// for the sum that it reads.
KernelText product_text(const Product& product, const TileForm& form, const Kernel& whole, const ProductLoops& loops,
                        const Kernel& epilogue);

}  // namespace rlx::gpu
