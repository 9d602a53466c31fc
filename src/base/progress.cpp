#include "base/progress.h"

#include <mutex>
#include <utility>

namespace rlx {
namespace {

struct Listening {
  std::mutex mutex;
  ProgressListener listener;
};

/// Never destroyed: other threads may still work when the process ends.
Listening& listening() {
  static auto* const only = new Listening;
  return *only;
}

}  // namespace

void listen_to_progress(ProgressListener listener) {
  const std::scoped_lock lock(listening().mutex);
  listening().listener = std::move(listener);
}

void report_progress(std::string_view work, std::size_t done, std::size_t total) {
  const std::scoped_lock lock(listening().mutex);
  if (listening().listener) listening().listener(work, done, total);
}

}  // namespace rlx
