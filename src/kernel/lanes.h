#pragma once
#include "kernel/schedule.h"

namespace rlx {

/// True when the reductions inside the innermost loop read their terms along that loop: memory is then read in order by turning the
/// loops around, with an accumulator for each of a block of lanes.
bool worth_blocks(const Kernel& kernel, const std::vector<std::set<int>>& free);

/// The same for a device whose lanes compute vectors of `width`: also where terms are too few to make vectors of, and where a kernel of
/// several loops has no reduction, so that its position is taken apart once a vector.
bool worth_vectors(const Kernel& kernel, const std::vector<std::set<int>>& free, int width);

/// How many loads of the reductions' terms are of neighbours along these, less those that are along the innermost loop.
int neighbours_along_terms(const Kernel& kernel, const std::vector<std::set<int>>& free);

/// The body of the loop over `lane`, as a body of one block: what depends on the lane runs in loops over the lanes inside the loops of
/// the reductions. Adds to `per_lane` what one such loop leaves for the next.
Block split_lanes(const Kernel& kernel, const std::vector<std::set<int>>& free, int lane, Block body, std::set<ExprId>& per_lane);

/// Whether neighbours along the variable are neighbours in memory, wherever they are.
bool steps_by_one(const Index& index, int variable);

/// Whether a loop without others inside reads what lies apart in memory, in even steps.
bool lies_apart(const Kernel& kernel, const Statement& loop);
inline constexpr std::int64_t apart_run = 32;  // terms of a sum that are added in pairs

/// Marks the loops without others inside whose loads and stores are mostly of neighbours in memory as computed by vectors.
void mark_vectors(const Kernel& kernel, const std::vector<std::set<int>>& free, int width, Block& body);

}  // namespace rlx
