#include "rlx/calibrator.h"

#include <algorithm>
#include <cmath>

#include "passes/precision.h"
#include "runtime/executable.h"

namespace rlx {
namespace {

Array copy_of(const Array& values) { return Array::of(values.shape(), values.values<float>()); }

/// Replaces each number by what `choose` makes of it and of the new one. NaN stays.
template <class Choose>
void merge(Array& known, const Array& more, Choose choose) {
  const auto from = more.values<float>();
  const auto to = known.mutable_values<float>();
  for (std::size_t i = 0; i < to.size(); ++i) to[i] = std::isnan(to[i]) || std::isnan(from[i]) ? NAN : choose(to[i], from[i]);
}

bool all_finite(const Array& values) {
  const auto numbers = values.values<float>();
  return std::all_of(numbers.begin(), numbers.end(), [](float x) { return std::isfinite(x); });
}

}  // namespace

Calibrator::Calibrator(const Session& session, const Graph& graph) : executable_(nullptr) {
  if (session.precision() != Precision::f32) fail("calibration: the session computes in another precision (allowed: f32)");
  NotedGraph noted = with_ranges_noted(graph);
  executable_ = session.compile(noted.graph);
  for (std::string& product : noted.products) ranges_.push_back({std::move(product), {}, {}});
}

void Calibrator::note(const Outputs& outputs) {
  for (std::size_t i = 0; i < ranges_.size(); ++i) {
    const Array &least = outputs.at(noted_name(i, "least")), &largest = outputs.at(noted_name(i, "largest"));
    if (noted_) {
      merge(ranges_[i].least, least, [](float a, float b) { return std::min(a, b); });
      merge(ranges_[i].largest, largest, [](float a, float b) { return std::max(a, b); });
    } else {
      ranges_[i].least = copy_of(least);
      ranges_[i].largest = copy_of(largest);
    }
  }
  noted_ = true;
}

Calibration Calibrator::calibration() const {
  if (!noted_) fail("calibration: no run was noted");
  for (const CalibratedRange& range : ranges_)
    if (!all_finite(range.least) || !all_finite(range.largest))
      fail("calibration: '{}' read numbers that are not finite, so it has no range", range.product);
  return {ranges_};
}

}  // namespace rlx
