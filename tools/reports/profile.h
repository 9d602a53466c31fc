#pragma once
#include <string>
#include <vector>

#include "backends/cpu/peaks/roofline.h"
#include "rlx/session.h"

/// One run looked at closely, and the forms that `rlx profile` writes it in.
namespace rlx::command {

struct Profile {
  std::string graph;
  std::string device;
  int threads = 0;  // of the CPU; 1: another device, which shows whole launches alone
  std::vector<LaunchReport> launches;
  std::vector<TraceEvent> events;
  cpu::Roofline roofline;

  /// The end of the last event, in seconds.
  double seconds() const;
  /// Seconds that a thread spent in launches: thread 0 in all of them, the others in their shares of loops.
  double busy(int thread) const;
  /// "thread 0", or the device.
  std::string track(int thread) const;
};

/// The timeline in the format of Chrome's traces, which https://ui.perfetto.dev opens: a track for each thread, times in microseconds.
std::string trace_json(const Profile& profile);

/// A page that needs nothing else: the launches under the machine's roofline, the timeline, and a table.
std::string profile_page(const Profile& profile);

}  // namespace rlx::command
