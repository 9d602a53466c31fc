#pragma once
#include <memory>

#include "backends/host_code.h"

namespace rlx::cpu {

/// Compiles kernel texts and keeps them loaded; LLVM is needed for what is not in the cache only. Texts that are not loaded yet come from
/// the disk cache or are compiled, by as many threads as there are for runs, whose own stay free. A cache that cannot be read or written is
/// done without; the counters say why. Objects in the files of programs count as those in the cache.
std::unique_ptr<HostCode> open_jit(const TargetDevice& target, const SessionOptions& options, int threads);

}  // namespace rlx::cpu
