#include "kernel/runs.h"

#include <algorithm>

#include "kernel/lanes.h"

namespace rlx {
namespace {

constexpr std::int64_t lane_run = 16, row_run = 512;
constexpr std::int64_t longest_row = 2 * row_run;  // that is one run
constexpr std::int64_t vectors = 64;               // terms: whole vectors of any CPU, as many as it adds at a time

/// Of a row that is one run, but for what is behind its whole vectors, where these are many enough to pay for a second loop.
std::optional<Runs> runs_of_short_row(const Dim& extent, std::size_t at) {
  constexpr std::int64_t shortest = 4 * vectors;
  if (extent.upper() < shortest) return std::nullopt;
  if (!extent.is_static()) return Runs{at, longest_row, vectors};
  const std::int64_t whole = extent.value() - extent.value() % vectors;
  return whole < extent.value() ? std::optional(Runs{at, whole, whole}) : std::nullopt;
}

/// The length of runs that leaves the fewest terms behind.
std::int64_t steps_of_long_row(const Dim& extent) {
  std::int64_t best = row_run;
  for (std::int64_t steps = row_run - 3 * vectors; extent.is_static() && steps <= row_run + 2 * vectors; steps += vectors)
    if (extent.value() % steps < extent.value() % best) best = steps;
  return best;
}

std::optional<Runs> runs_of_row(const Dim& extent, std::size_t at, bool light) {
  if (extent.upper() > longest_row) return light ? Runs{at, steps_of_long_row(extent), steps_of_long_row(extent)} : Runs{at, row_run, 0};
  return light ? runs_of_short_row(extent, at) : std::nullopt;
}

}  // namespace

std::optional<Runs> runs_of(const Kernel& kernel, const std::vector<int>& variables, bool by_lane, bool light, bool apart) {
  // Lanes, and rows whose terms lie apart, go through all terms one by one; rows inside other loops are each added to what came before.
  const bool one_by_one = by_lane || (apart && light);
  const std::int64_t run = by_lane ? lane_run : one_by_one ? apart_run : vectors;
  std::int64_t terms = 1;
  for (std::size_t at = variables.size(); at-- > 0;) {
    const Dim& extent = kernel.extent(variables[at]);
    const bool innermost = at + 1 == variables.size();
    if (innermost && !one_by_one) {
      if (const auto runs = runs_of_row(extent, at, light)) return runs;
    } else if (extent.upper() > run / terms) {
      const std::int64_t steps = std::max<std::int64_t>(1, run / terms);
      return Runs{at, steps, innermost && light ? steps : 0};
    }
    terms *= std::max<std::int64_t>(1, extent.upper());
  }
  return std::nullopt;
}

}  // namespace rlx
