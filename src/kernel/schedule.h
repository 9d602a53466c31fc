#pragma once
#include <map>
#include <set>

#include "kernel/cost.h"
#include "kernel/product_block.h"
#include "kernel/runs.h"

namespace rlx {

struct Statement;
using Block = std::vector<Statement>;

/// One step of a scheduled kernel.
struct Statement {
  enum class Kind : std::uint8_t {
    compute,     // value of `expr`
    begin,       // accumulator of the reduction `expr` set to its neutral value
    loop,        // `body` for each value of `variable`
    blocks,      // `body` for each run of up to `block_lanes` values of `variable`; with lanes for the one at hand
    lanes,       // `body` for each value of `variable` in the block at hand
    runs,        // `body` for each run of values of `variable`, through which a loop inside goes
    restart,     // accumulator of the sum `expr` set to 0 for the next run
    accumulate,  // accumulator of `expr` combined with its body
    carry,       // accumulator of the sum `expr` added to its total
    store,       // kernel.stores[store]
  };
  Kind kind;
  ExprId expr = -1;
  int variable = -1;
  int store = -1;
  Block body;
  bool kept = false;                  // compute: an earlier loop over the same row left the value
  std::int64_t steps = 0, whole = 0;  // runs: see Runs
  int vector = 1;                     // loop: so many neighbouring values are computed side by side
  bool dots = false;                  // loop: of sums that are DotSums, of which lanes inside have one each
  // Loops of a group of lanes.
  int shared = 0;  // each lane has every so manieth vector of its values; beyond 1: counted together with those of so many - 1 loops inside
  int slots = 0;   // so many vectors are a lane's at most, and what it keeps of them has a place for each; 0: not known
};

inline constexpr int block_lanes = 128;  // of a block, without lanes of the device
inline constexpr int warp_lanes = 32;    // that exchange numbers without memory

/// What of a device decides how its loops run.
struct ScheduleOptions {
  bool lanes = false;    // a thread computes one position of the grid, and there are many of them; else few threads go through ranges
  int vector = 1;        // with lanes: numbers of 32 bits that a thread computes at a time in loops of its own
  bool dots = false;     // with vectors: sums of products of 8-bit numbers are added by fours, see DotSum
  bool products = true;  // with lanes: a thread may compute a block of sums of products
  int group = 0;         // with lanes: the most of them that work together on a row; 0: memory on chip is like any other, and none do
};

/// Lanes that work together on a position: each has its part of the terms of reductions, and of the elements of a row.
struct Group {
  int lanes = 0;           // 0: none do
  int rows = 1;            // neighbouring positions of the innermost loop of the grid that are one, each with lanes of its own
  std::set<ExprId> parts;  // reductions of which each lane has a part
};

/// A loop whose positions are counted, in runs of `step` that one position stands for.
struct GridLoop {
  int loop;
  int step = 1;
  friend bool operator==(const GridLoop&, const GridLoop&) = default;
};

/// A kernel as loops. Grid variables are decoded from one flat index that the caller splits over threads; `body` runs for each. With lanes
/// the innermost loop is in the grid as well, unless there are values that it would compute again at each of its places.
struct Scheduled {
  std::vector<GridLoop> grid;
  Block body;
  /// With lanes: the sum that a position computes for a block of results. The body runs for each of these, and has no reduction.
  std::optional<ProductBlock> product;
  Group group;
  /// The only loop of a kernel whose lanes run in blocks: the caller's range is a range of this variable. -1: none.
  int split = -1;
  int block_lanes = rlx::block_lanes;
  /// The loops whose positions the caller counts.
  std::vector<GridLoop> counted() const { return split >= 0 ? std::vector{GridLoop{split}} : grid; }
  /// Loads that only happen under a guard: their index must be clamped, for it is computed in any case; but for the part given here, of
  /// variables that no guard asks about, which are whole axes wherever the guards hold. Neighbours along these then stay neighbours.
  std::map<ExprId, Index> guarded_loads;
  /// Values and accumulators that are kept for each lane of a block, from one loop over the lanes to the next.
  std::set<ExprId> per_lane;
  /// Values that a loop leaves, for each value of its variable, for later loops over that variable.
  std::map<ExprId, int> per_row;
  /// Sums of many terms: the accumulator holds those of one run, and what adding a run to the total rounds off is kept beside it.
  std::set<ExprId> in_runs;
};

/// Merges neighbouring loops wherever every index treats them as one. Guarantees: the same stores.
void merge_loops(Kernel& kernel);

/// Places every expression in the outermost loop where its variables are known, so invariants are hoisted and every reduction runs
/// once for each value of the variables it depends on. Reductions over the same range that do not need each other share a loop.
/// What a later loop over the same row would compute again at some cost is kept.
/// Without lanes a reduction whose terms lie side by side along the innermost loop, and apart along its own, runs over blocks of lanes.
/// Long sums of floats are cut into runs (`runs.h`), so that their error does not grow with their length.
Scheduled schedule(const Kernel& kernel, const ScheduleOptions& options = {});

/// A part of a number of rounds: `size` times `share`.
struct Rounds {
  Dim size;
  double share = 1;
};

/// How many rounds all loops of a block take together, at most: the sum of these parts. The look that ends a loop is a round of it.
/// Of schedules with lanes, without groups or vectors.
std::vector<Rounds> rounds_of(const Kernel& kernel, const Block& block);

}  // namespace rlx
