#pragma once
#include <memory>
#include <vector>

#include "backends/cpu/execution/work.h"

namespace rlx::cpu {

/// What a launch needs at run time, found once for each program.
struct Step : LaunchStep {
  const Work* work = nullptr;         // claim: that of the launch
  int weights = -1;                   // claim: the slot of what was packed for it, which may have no memory; -1: none
  std::int64_t weight_bytes = 0;      // of that
  int experts = -1;                   // claim: the slot of what tells which parts of those are read; -1: all are
  std::size_t joined = 1;             // claim: how many steps from this one on run as one loop
  std::shared_ptr<const void> found;  // claim: what it needs beside that

  template <class T>
  const T& found_as() const {
    return *static_cast<const T*>(found.get());
  }
};

/// Of a launch that packs so many bytes, and of one that reads them. Throws Error for a program file that has other memory for them.
void prepare_packing(Step& step, const Preparation& given, std::int64_t bytes);
void prepare_weights(Step& step, const Preparation& given, ValueId packed, std::int64_t bytes);

/// Scratch memory of the calling thread for a step of `run`, kept from one to the next.
std::byte* workspace(const RunState& run, std::size_t bytes);

/// The steps of a program; see HostCode::steps.
std::unique_ptr<HostProgram> make_steps(const Preparation& given, const std::vector<bool>& prepared);

}  // namespace rlx::cpu
