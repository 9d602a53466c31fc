#pragma once
#include <span>

#include "backends/cpu/execution/work.h"
#include "base/thread_pool.h"
#include "lowering/state_update.h"

namespace rlx::cpu {

/// Windows of states are copied where they lie.
const Claim& state_update_claim();

void prepare_step(const StateUpdate& update, Step& step, const Preparation& given);
void run_step(const StateUpdate& update, const Step& step, const RunState& run);

/// An array in memory.
struct Window {
  const std::byte* bytes;
  std::vector<std::int64_t> shape, starts;
};
/// Writes windows of one shape into `to` (shape), elements of `width` bytes, one after the other; starts are clamped. Where workers stay on
/// several memory nodes each writes an equal part of the windows' first axis with more than one index, so that pages which are new belong
/// to its node: of keys and values that axis are heads, which attention cuts likewise for a sequence's next token.
void copy_windows(std::span<const Window> windows, std::span<const std::int64_t> shape, std::int64_t width, std::byte* to,
                  ThreadPool& pool);

}  // namespace rlx::cpu
