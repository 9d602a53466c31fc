#pragma once
#include <memory>

#include "backends/cpu/execute.h"

namespace rlx::cpu {

/// Sizes and places of an attention, where those that depend on symbols come into the table.
std::shared_ptr<const AttentionStep> prepare_attention(const Attention& attention, const Program& program, SizeTable& size,
                                                       const std::function<int(ValueId)>& slot_of);

void run_attention(const AttentionStep& step, const RunState& run);

}  // namespace rlx::cpu
