#pragma once
#include "kernel/kernel.h"
#include "rlx/graph.h"

namespace rlx {

/// Marks the results that are stored past the caches: of at least `past_caches_bytes`, not read by the kernel itself, and made of whole
/// lines of the caches, row by row. Such a store need not read what it overwrites: of 3 bytes that move otherwise it moves 2. Sizes that
/// are only known at run time count as small.
void mark_large_results(Kernel& kernel, const Graph& graph, std::int64_t past_caches_bytes);

}  // namespace rlx
