#include "base/working.h"

#include <pthread.h>

#include <atomic>

#include "rlx/error.h"

namespace rlx {
namespace {

std::atomic<int> alive{0};
bool was_cut_off = false;  // written while there is one thread

/// Counts anew: the threads that made those alive are not here.
void begin_child() {
  was_cut_off = was_cut_off || alive > 0;
  alive = 0;
}

[[maybe_unused]] const int watched = pthread_atfork(nullptr, nullptr, begin_child);

}  // namespace

Working::Working() {
  if (was_cut_off)
    fail(
        "this process was forked while another thread of its parent compiled or ran something, and cannot do so itself (allowed: fork "
        "before or after, or start processes by spawn or forkserver)");
  ++alive;
}

Working::~Working() { --alive; }

}  // namespace rlx
