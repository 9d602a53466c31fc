#include "backends/cpu/llvm/bf16_rounding.h"

#include <vector>

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/PatternMatch.h>
#include <llvm/Transforms/Utils/Local.h>

namespace rlx::cpu {
namespace {

/// The f32, one or a vector, whose bf16 the instruction gives as i16; null where it is anything else.
llvm::Value* rounded(llvm::Instruction& instruction) {
  using namespace llvm::PatternMatch;
  llvm::Value *unordered = nullptr, *quiet = nullptr, *nearest = nullptr, *bits = nullptr, *from = nullptr;
  if (!match(&instruction, m_Trunc(m_LShr(m_Select(m_Value(unordered), m_Value(quiet), m_Value(nearest)), m_SpecificInt(16)))) ||
      !instruction.getType()->isIntOrIntVectorTy(16))
    return nullptr;
  const auto odd = m_And(m_LShr(m_Deferred(bits), m_SpecificInt(16)), m_One());
  if (!match(nearest, m_c_Add(m_Add(m_Value(bits), m_SpecificInt(0x7FFF)), odd)) ||
      !match(quiet, m_Or(m_Specific(bits), m_SpecificInt(0x400000))))
    return nullptr;
  if (!match(bits, m_BitCast(m_Value(from))) || !from->getType()->getScalarType()->isFloatTy()) return nullptr;
  const auto* test = llvm::dyn_cast<llvm::FCmpInst>(unordered);
  const bool tests_it = test && test->getPredicate() == llvm::CmpInst::FCMP_UNO && test->getOperand(0) == from;
  return tests_it && match(test->getOperand(1), m_AnyZeroFP()) ? from : nullptr;
}

}  // namespace

void round_to_bf16_at_once(llvm::Function& function) {
  std::vector<llvm::Instruction*> replaced;
  for (llvm::Instruction& instruction : llvm::instructions(function)) {
    llvm::Value* const from = rounded(instruction);
    if (!from) continue;
    llvm::IRBuilder<> builder(&instruction);
    llvm::Value* const narrow = builder.CreateFPTrunc(from, from->getType()->getWithNewType(builder.getBFloatTy()));
    instruction.replaceAllUsesWith(builder.CreateBitCast(narrow, instruction.getType()));
    replaced.push_back(&instruction);
  }
  for (llvm::Instruction* instruction : replaced) llvm::RecursivelyDeleteTriviallyDeadInstructions(instruction);
}

}  // namespace rlx::cpu
