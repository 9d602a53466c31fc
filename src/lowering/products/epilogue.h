#pragma once
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "kernel/pull.h"

// What is computed from a dot on the tiles of its product.

namespace rlx {

/// The values computed from a dot element by element that can be computed on its tiles, in order: scalar ops, reshapes and
/// permutations whose results are used by nobody outside the region but through its last value.
/// `users` lists the nodes that read each value; `must_store` marks values that are stored in any case, `is_taken` those that others
/// compute.
std::vector<ValueId> epilogue_region(const Graph& graph, ValueId dot, const std::map<ValueId, std::vector<std::int32_t>>& users,
                                     const std::function<bool(ValueId)>& must_store, const std::function<bool(ValueId)>& is_taken);

using TilePlaces = std::map<ValueId, std::vector<Index>>;  // of the element of each value that one element of the dot becomes
/// The element of each value of the region that the element `at` of the dot becomes; nothing where one is no such move.
std::optional<TilePlaces> places_of(const Graph& graph, ValueId dot, std::vector<Index> at, const std::vector<ValueId>& region);

/// Makes the loads of the dot's element loads of the tile, whose sums are of type `sum`. False where another element is read, or something
/// is summed.
bool read_tile(Kernel& kernel, ValueId dot, const Index& dot_index, const Index& tile_index, DType sum);
/// Rounds what a kernel loads of `sums`, wider numbers that stand for those of the value.
void round_sums(Kernel& kernel, ValueId sums, DType dtype);

}  // namespace rlx
