#pragma once
#include <llvm/IR/Function.h>
#include <llvm/IR/PassManager.h>

namespace rlx::cpu {

/// Runs after LLVM's own passes, which make no vectors of a loop that holds a store past the caches. Makes those vector stores of the
/// function go past the caches whose parameter bears `past_caches_mark` and which are aligned as a whole vector. Where there are some, what
/// its loops read of one row after the other is asked for a row ahead, and a fence ends the function.
/// Assumes: x86-64. Guarantees: the same numbers.
void store_past_caches(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);

}  // namespace rlx::cpu
