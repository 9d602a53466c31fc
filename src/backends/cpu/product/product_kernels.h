#pragma once
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "backends/cpu/product/product.h"

// The kernels that are generated into a product: an epilogue over the tiles of its result, a prologue in the packing of A.

namespace rlx::cpu {

/// An epilogue is called for every tile with arrays on the stack: at most this many buffers, and as many sizes (the graph's symbols, then
/// those of the tile: its row stride, the ranges of batch, rows and columns).
inline constexpr std::size_t most_epilogue_arguments = 64, epilogue_tile_sizes = 7;

/// Completes `product` with an epilogue over `region`, at least its dot: the region's last value becomes the result. The kernel takes
/// `symbols`, and one more for the distance of the tile's rows, or of its columns where it is transposed. False when the tile cannot be
/// addressed, or the kernel would take more buffers or sizes than `most_epilogue_arguments`.
bool add_epilogue(const Graph& graph, Product& product, const std::vector<ValueId>& region, const std::vector<std::string>& symbols,
                  const Puller::IsStored& is_stored);

/// Whether an element of the operand of a dot is cheap enough to be computed anew for each block that reads it: casts, scales, masks.
bool is_little_work(const Graph& graph, ValueId operand, const Puller::IsStored& is_stored);

/// What has to be stored for the rest to be little work: the statistics of a norm, or nothing. No set where it is not.
std::optional<std::set<ValueId>> statistics_below(const Graph& graph, ValueId operand, const Puller::IsStored& is_stored);

/// Completes `product`, whose left operand is not stored, with the kernel that computes it. It takes `symbols`, and one more for the
/// distance of a block's rows, or of its columns. False when it would take more arguments than `most_epilogue_arguments`, or read A through
/// tables.
bool add_prologue(const Graph& graph, Product& product, const std::vector<std::string>& symbols, const Puller::IsStored& is_stored);

}  // namespace rlx::cpu
