#pragma once
#include "kernel/schedule.h"

namespace rlx {

/// How many lanes work together on a row, where that pays: rows with reductions of many terms that are neighbours in memory, and of which
/// no lane should read one alone. By sizes alone. `inside`: the innermost loop runs inside a position. `used`: by expression.
std::optional<Group> choose_group(const Kernel& kernel, const std::vector<std::set<int>>& free, const std::vector<bool>& used,
                                  int most_lanes, bool inside);

/// How many neighbours along the innermost loop a lane computes that works alone, so that what it loads and stores is one vector each.
int neighbours_of_lane(const Kernel& kernel, const std::vector<std::set<int>>& free, const std::vector<bool>& used);

/// Where what lies at the index begins for all values of its variables but this, which is 0: at bounds of so many bytes, up to 16.
int aligned_bytes(const KernelBuffer& buffer, const Index& index, int variable);

/// The runs of a sum of a group: each of its lanes adds as many terms as a lane that works alone.
std::optional<Runs> runs_of_group(const Kernel& kernel, ExprId sum, int lanes);

/// Marks the loops that the lanes of the group share, and the reductions whose value each of them has a part of.
void share_loops(const Kernel& kernel, const std::vector<std::set<int>>& free, Scheduled& scheduled);

}  // namespace rlx
