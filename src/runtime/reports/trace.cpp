// A run's timeline: when each launch ran, and what each thread did in its loops.
#include "runtime/run.h"

namespace rlx {
namespace {

using Clock = LoopRecord::Clock;

/// The last of the launches ends with the run.
double end_of(const std::vector<TraceEvent>& launches) { return launches.empty() ? 0 : launches.back().end; }

}  // namespace

std::vector<TraceEvent> Run::trace(int repeats) {
  prepare();
  std::vector<TraceEvent> launches, shares;
  for (int r = 0; r < repeats; ++r) {
    LoopRecord record(state_.session->threads);
    const auto start = Clock::now();
    std::vector<TraceEvent> those = trace_launches(record, start);
    if (r > 0 && end_of(those) >= end_of(launches)) continue;
    launches = std::move(those);
    shares.clear();
    const auto since_start = [&](Clock::time_point t) { return std::chrono::duration<double>(t - start).count(); };
    for (std::size_t worker = 0; worker < record.of_worker.size(); ++worker)
      for (const LoopRecord::Interval& interval : record.of_worker[worker])
        shares.push_back({interval.part, static_cast<int>(worker), false, since_start(interval.begin), since_start(interval.end)});
  }
  launches.insert(launches.end(), shares.begin(), shares.end());
  return launches;
}

/// One run; its loops are noted in `record` by the number of the launch.
std::vector<TraceEvent> Run::trace_launches(LoopRecord& record, Clock::time_point start) {
  const RecordLoops recording(record);
  std::vector<TraceEvent> launches;
  const auto now = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
  for (std::size_t i = 0; i < state_.is_prepared.size(); ++i) {
    if (state_.is_prepared[i]) continue;
    record.part = i;
    const double begin = now(), taken = seconds_of(i), end = now();
    // As long as a device's own clock says, up to when it is known to be done.
    launches.push_back({i, 0, true, std::max(begin, end - taken), end});
  }
  return launches;
}

}  // namespace rlx
