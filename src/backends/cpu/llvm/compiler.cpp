// The library librlx_llvm, which is all that is linked with LLVM.
#include "backends/cpu/compiler.h"

#include <mutex>

#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/IRReader/IRReader.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/SourceMgr.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/TargetParser/Host.h>

#include "backends/cpu/llvm/bf16_rounding.h"
#include "backends/cpu/llvm/past_caches.h"
#include "rlx/error.h"

namespace rlx::cpu {

namespace {

/// Processor and features that LLVM generates for.
struct Target {
  std::string cpu;
  std::string features;
};

Target target_for(CpuLevel level) {
  if (level == CpuLevel::avx2) return {"x86-64-v3", ""};
  if (level == CpuLevel::portable) return {llvm::sys::getDefaultTargetTriple().rfind("x86_64", 0) == 0 ? "x86-64" : "generic", ""};
  Target target{llvm::sys::getHostCPUName().str(), ""};
  for (const auto& feature : llvm::sys::getHostCPUFeatures())
    target.features += (target.features.empty() ? "" : ",") + std::string(feature.second ? "+" : "-") + feature.first().str();
  // Vectors have the width that kernels are written for, also where LLVM would halve it. Kernels compute halves as f32, and AVX512-FP16,
  // by which LLVM computes some of them as they are, gave NaN for a sample of `zeta`.
  if (llvm::Triple(llvm::sys::getDefaultTargetTriple()).isX86()) target.features += ",-prefer-256-bit,-avx512fp16";
  return target;
}

std::unique_ptr<llvm::TargetMachine> make_machine(const Target& target) {
  const std::string triple = llvm::sys::getDefaultTargetTriple();
  std::string error;
  const llvm::Target* found = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!found) fail_internal("jit: {}", error);
  return std::unique_ptr<llvm::TargetMachine>(found->createTargetMachine(triple, target.cpu, target.features, llvm::TargetOptions(),
                                                                         llvm::Reloc::PIC_, llvm::CodeModel::Small,
                                                                         llvm::CodeGenOptLevel::Default));
}

void optimize(llvm::Module& module, llvm::TargetMachine& machine) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager sccs;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(sccs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, sccs, modules);
  builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O2).run(module, modules);
  if (machine.getMCSubtargetInfo()->checkFeatures("+avx512bf16,+avx512vl"))
    for (llvm::Function& function : module) round_to_bf16_at_once(function);
  // Elsewhere than on x86 a store past the caches is of two registers at once, which no loop here makes: such results are stored as any.
  if (!machine.getTargetTriple().isX86()) return;
  for (llvm::Function& function : module)
    if (!function.isDeclaration()) store_past_caches(function, functions);
}

std::string compile(const KernelText& kernel, const Target& target) {
  llvm::LLVMContext context;
  llvm::SMDiagnostic diagnostic;
  auto module = llvm::parseIR(llvm::MemoryBufferRef(kernel.text, kernel.name), diagnostic, context);
  if (!module)
    fail_internal("jit: {}: line {}: {}\n{}", kernel.name, diagnostic.getLineNo(), diagnostic.getMessage().str(),
                  diagnostic.getLineContents().str());
  auto machine = make_machine(target);
  module->setTargetTriple(machine->getTargetTriple().str());
  module->setDataLayout(machine->createDataLayout());
  optimize(*module, *machine);
  llvm::SmallVector<char, 0> object;
  llvm::raw_svector_ostream stream(object);
  llvm::legacy::PassManager passes;
  if (machine->addPassesToEmitFile(passes, stream, nullptr, llvm::CodeGenFileType::ObjectFile))
    fail_internal("jit: the target writes no objects");
  passes.run(*module);
  return {object.begin(), object.end()};
}

template <class T>
T unwrap(llvm::Expected<T> value) {
  if (!value) fail_internal("jit: {}", llvm::toString(value.takeError()));
  return std::move(*value);
}
void check(llvm::Error error) {
  if (error) fail_internal("jit: {}", llvm::toString(std::move(error)));
}

void initialize_llvm() {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
  });
}

class Llvm : public Compiler {
 public:
  explicit Llvm(CpuLevel level) : target_(target_for(level)) {}

  std::string compile(const KernelText& kernel) const override { return cpu::compile(kernel, target_); }

  KernelFunction link(std::string_view object, const std::string& name) override {
    if (!linker_) linker_ = make_linker();
    check(linker_->addObjectFile(llvm::MemoryBuffer::getMemBufferCopy({object.data(), object.size()}, name)));
    return unwrap(linker_->lookup(name)).toPtr<KernelFunction>();
  }

 private:
  static std::unique_ptr<llvm::orc::LLJIT> make_linker() {
    llvm::orc::LLJITBuilder builder;
    auto machine = llvm::orc::JITTargetMachineBuilder(llvm::Triple(llvm::sys::getDefaultTargetTriple()));
    auto linker = unwrap(builder.setJITTargetMachineBuilder(machine).create());
    linker->getMainJITDylib().addGenerator(
        unwrap(llvm::orc::DynamicLibrarySearchGenerator::GetForCurrentProcess(linker->getDataLayout().getGlobalPrefix())));
    return linker;
  }

  Target target_;
  std::unique_ptr<llvm::orc::LLJIT> linker_;
};

}  // namespace
}  // namespace rlx::cpu

/// See compiler_entry.
extern "C" rlx::cpu::Compiler* rlx_make_compiler(rlx::cpu::CpuLevel level) {
  rlx::cpu::initialize_llvm();
  return new rlx::cpu::Llvm(level);
}
