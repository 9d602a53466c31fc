#pragma once
#include <optional>

#include "kernel/kernel.h"
#include "lowering/program.h"

namespace rlx {

/// A kernel with products of as many rows as a run has, as a kernel of one row, and when it can stand for the other: groups of lanes
/// compute it. None where it is no such kernel.
std::optional<std::pair<Kernel, SizeRange>> of_one_row(const Kernel& kernel);

}  // namespace rlx
