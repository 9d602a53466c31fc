#pragma once
#include "emit/emit.h"

namespace rlx {

/// A tile kernel as a function of CUDA C++ that kernels written by hand call. Its arguments are those of emit_cuda, with begin and end of
/// each loop, by variable, behind the symbols.
KernelText emit_cuda_function(const Kernel& tile);

}  // namespace rlx
