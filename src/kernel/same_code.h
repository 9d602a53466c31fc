#pragma once
#include "kernel/kernel.h"

namespace rlx {

/// Whether two kernels do the same with their buffers, whatever values of the graph those hold.
bool same_code(const Kernel& a, const Kernel& b);

/// A hash of what `same_code` compares.
std::size_t code_hash(const Kernel& kernel);

}  // namespace rlx
