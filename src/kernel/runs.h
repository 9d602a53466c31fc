#pragma once
#include <optional>

#include "kernel/kernel.h"

namespace rlx {

/// Where a reduction's loops are cut: its variable `at` (0: the outermost) goes in runs of up to `steps` values. As many values as are a
/// multiple of `whole` come first, in runs of known length, and what is left is a run of its own. 0: runs are cut off at the end.
struct Runs {
  std::size_t at = 0;
  std::int64_t steps = 1, whole = 0;
};

/// The runs of a sum over these variables, by their sizes alone (the bounds of symbols), or none where it is short. An accumulator rounds
/// once a term, so it adds the terms of one run only; what is lost where runs are added to their total is known exactly and added at the
/// end. Vectors of accumulators, too, are added at the end of a run, so what is behind the last whole vectors is a run of its own.
/// `by_lane`: each lane has one accumulator. `light`: terms are so little work that the loop may be written twice.
/// `apart`: its terms lie apart in memory, so that no vectors are made of them.
std::optional<Runs> runs_of(const Kernel& kernel, const std::vector<int>& variables, bool by_lane, bool light, bool apart);

inline bool is_float_sum(const Expr& e) { return e.kind == Expr::Kind::reduce && e.reduce == ReduceKind::sum && is_float(e.dtype); }

}  // namespace rlx
