#pragma once
#include <llvm/IR/Function.h>

namespace rlx::cpu {

/// Runs after LLVM's own passes, which make no vectors of its rounding to bfloat. Replaces f32 -> bf16 as LlvmScalars writes it, nine
/// instructions, by that rounding, which is one where the CPU has AVX512-BF16.
/// Assumes: such a CPU. Guarantees: the same numbers, but for denormal ones, which become zeros as elsewhere in kernels.
void round_to_bf16_at_once(llvm::Function& function);

}  // namespace rlx::cpu
