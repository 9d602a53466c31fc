#pragma once
#include "lowering/outputs.h"

namespace rlx {

/// Kernels that together store what the kernel of `outputs` does, the one with the most elements first: boxes of its loops in which its
/// choices are made, but for narrow ones. What chooses between two loads for each element is no vector code. Nothing where there is no
/// choice by the places of loops, where it is small, or where sizes are symbols.
std::vector<Kernel> split_at_guards(const Graph& graph, const OutputKernel& outputs, const Puller::IsStored& is_stored);

}  // namespace rlx
