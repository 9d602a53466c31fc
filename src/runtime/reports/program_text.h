#pragma once
#include <string>

#include "runtime/executable.h"

namespace rlx {

/// A program as people read it: its slots, with what they take; its launches, with what each reads and writes; their kernels, with the
/// positions that each counts and the slots of its buffers.
std::string program_text(const Executable::State& state);

}  // namespace rlx
