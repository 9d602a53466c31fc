#include "backends/cpu/llvm/past_caches.h"

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/Analysis/ScalarEvolutionExpressions.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/Module.h>

#include "emit/emit.h"

namespace rlx::cpu {
namespace {

/// Whether the text of the kernel says that what this parameter points to goes past the caches.
bool bears_mark(const llvm::Argument& parameter) {
  return parameter.getParent()->getAttributes().hasParamAttr(parameter.getArgNo(), past_caches_mark);
}

class PastCaches {
 public:
  PastCaches(llvm::Function& function, llvm::FunctionAnalysisManager& analyses)
      : function_(function),
        evolution_(analyses.getResult<llvm::ScalarEvolutionAnalysis>(function)),
        loops_(analyses.getResult<llvm::LoopAnalysis>(function)) {}

  void run() {
    std::vector<llvm::StoreInst*> stores;
    for (llvm::Instruction& instruction : llvm::instructions(function_))
      if (auto* store = llvm::dyn_cast<llvm::StoreInst>(&instruction); store && may_go_past(*store)) stores.push_back(store);
    if (stores.empty()) return;
    find_rows();
    for (llvm::StoreInst* store : stores) send_past(*store);
    for (const auto& [base, rows] : rows_)
      for (const Row& row : rows.reads) fetch(row);
    add_fences();
  }

 private:
  /// A load whose next row is so many bytes behind it.
  struct Row {
    llvm::LoadInst* load;
    const llvm::SCEV* place;
    std::int64_t next;
  };
  struct Rows {
    const llvm::Loop* loop = nullptr;
    std::vector<Row> reads;
  };

  /// Bytes of a vector; 0 for anything else.
  std::uint64_t vector_bytes(llvm::Type* type) const {
    const bool is_vector = llvm::isa<llvm::FixedVectorType>(type);
    return is_vector ? function_.getParent()->getDataLayout().getTypeStoreSize(type).getFixedValue() : 0;
  }
  /// The parameter behind an address; null: there is none.
  const llvm::Argument* parameter(const llvm::SCEV* place) {
    const auto* base = llvm::dyn_cast<llvm::SCEVUnknown>(evolution_.getPointerBase(place));
    return base ? llvm::dyn_cast<llvm::Argument>(base->getValue()) : nullptr;
  }
  bool may_go_past(const llvm::StoreInst& store) {
    const std::uint64_t bytes = vector_bytes(store.getValueOperand()->getType());
    const llvm::SCEV* place = evolution_.getSCEV(const_cast<llvm::Value*>(store.getPointerOperand()));
    const llvm::Argument* to = parameter(place);
    return bytes >= 16 && to && bears_mark(*to) && evolution_.getConstantMultiple(place).getZExtValue() % bytes == 0;
  }
  void send_past(llvm::StoreInst& store) {
    llvm::LLVMContext& context = function_.getContext();
    store.setAlignment(llvm::Align(vector_bytes(store.getValueOperand()->getType())));
    auto* one = llvm::ConstantAsMetadata::get(llvm::ConstantInt::get(llvm::Type::getInt32Ty(context), 1));
    store.setMetadata(llvm::LLVMContext::MD_nontemporal, llvm::MDNode::get(context, one));
  }

  /// What the last loop over a row reads of each parameter: by then the loops before it have their rows, and memory would rest.
  void find_rows() {
    for (llvm::Loop* loop : loops_.getLoopsInPreorder())
      if (loop->isInnermost())
        for (llvm::BasicBlock* block : loop->blocks())
          for (llvm::Instruction& instruction : *block)
            if (auto* load = llvm::dyn_cast<llvm::LoadInst>(&instruction)) note(*load, *loop);
  }
  void note(llvm::LoadInst& load, const llvm::Loop& loop) {
    if (vector_bytes(load.getType()) == 0) return;
    const llvm::SCEV* place = evolution_.getSCEV(load.getPointerOperand());
    const llvm::Argument* from = parameter(place);
    const std::optional<std::int64_t> next = next_row(place, loop);
    if (!from || !next) return;
    Rows& rows = rows_[from];
    if (rows.loop != &loop) rows = {&loop, {}};
    for (const Row& other : rows.reads)
      if (is_on_one_line(other.place, place)) return;
    rows.reads.push_back({&load, place, *next});
  }
  std::optional<std::int64_t> next_row(const llvm::SCEV* place, const llvm::Loop& loop) const {
    const auto* along = llvm::dyn_cast<llvm::SCEVAddRecExpr>(place);
    if (!along || along->getLoop() != &loop) return std::nullopt;
    const auto* across = llvm::dyn_cast<llvm::SCEVAddRecExpr>(along->getStart());
    if (!across || across->getLoop() != loop.getParentLoop()) return std::nullopt;
    const auto* step = llvm::dyn_cast<llvm::SCEVConstant>(across->getOperand(1));
    return step && across->isAffine() ? std::optional(step->getAPInt().getSExtValue()) : std::nullopt;
  }
  bool is_on_one_line(const llvm::SCEV* a, const llvm::SCEV* b) {
    const auto* apart = llvm::dyn_cast<llvm::SCEVConstant>(evolution_.getMinusSCEV(a, b));
    return apart && apart->getAPInt().abs().ult(cache_line);
  }
  /// Into the second-level cache: in the first one a row at hand and what is kept of it have their place. Behind the last row this asks for
  /// what nobody reads, which is no error.
  static void fetch(const Row& row) {
    llvm::IRBuilder<> builder(row.load);
    llvm::Value* place =
        builder.CreateConstGEP1_64(builder.getInt8Ty(), row.load->getPointerOperand(), static_cast<std::uint64_t>(row.next));
    constexpr int reading = 0, second_level = 2, data = 1;
    builder.CreateIntrinsic(llvm::Intrinsic::prefetch, {place->getType()},
                            {place, builder.getInt32(reading), builder.getInt32(second_level), builder.getInt32(data)});
  }

  /// x86 orders a store past the caches with no later one, so that neither the release by which a thread of the pool ends its part nor any
  /// other would show it to who waits for that. Behind a fence it is as any store before the release.
  void add_fences() {
    for (llvm::BasicBlock& block : function_)
      if (auto* end = llvm::dyn_cast<llvm::ReturnInst>(block.getTerminator())) {
        llvm::IRBuilder<> builder(end);
        builder.CreateIntrinsic(builder.getVoidTy(), llvm::Intrinsic::x86_sse_sfence, {});
      }
  }

  llvm::Function& function_;
  llvm::ScalarEvolution& evolution_;
  llvm::LoopInfo& loops_;
  std::map<const llvm::Argument*, Rows> rows_;
};

}  // namespace

void store_past_caches(llvm::Function& function, llvm::FunctionAnalysisManager& analyses) {
  if (std::any_of(function.arg_begin(), function.arg_end(), bears_mark)) PastCaches(function, analyses).run();
}

}  // namespace rlx::cpu
