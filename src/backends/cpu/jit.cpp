#include "backends/cpu/jit.h"

#include <atomic>
#include <cstdlib>
#include <map>
#include <mutex>

#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/IRReader/IRReader.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/SourceMgr.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/TargetParser/Host.h>

#include "backends/cpu/object_cache.h"
#include "backends/cpu/past_caches.h"
#include "rlx/error.h"

namespace rlx::cpu {

std::filesystem::path default_cache_folder() {
  if (const char* own = std::getenv("RLX_CACHE")) return own;
  if (const char* xdg = std::getenv("XDG_CACHE_HOME"); xdg && *xdg == '/') return std::filesystem::path(xdg) / "rlx";
  if (const char* home = std::getenv("HOME"); home && *home) return std::filesystem::path(home) / ".cache" / "rlx";
  return {};
}

namespace {

/// How `optimize` and `make_machine` compile, beside the processor. It is part of every cache key: change it together with them.
constexpr std::string_view pipeline = "default<O2>, stores past the caches, position-independent, small code model, codegen default";

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

}  // namespace

struct Jit::State {
  Target target;
  ObjectCache cache;
  std::string flags;
  std::unique_ptr<llvm::orc::LLJIT> lljit;
  std::mutex mutex;
  std::map<std::string, KernelFunction, std::less<>> loaded;
  JitCounters counters;

  State(CpuLevel level, std::filesystem::path folder) : target(target_for(level)), cache(std::move(folder)) {
    flags = fmt::format("llvm {} {} {} {}", LLVM_VERSION_STRING, pipeline, target.cpu, target.features);
    llvm::orc::LLJITBuilder builder;
    auto machine = llvm::orc::JITTargetMachineBuilder(llvm::Triple(llvm::sys::getDefaultTargetTriple()));
    lljit = unwrap(builder.setJITTargetMachineBuilder(machine).create());
    lljit->getMainJITDylib().addGenerator(
        unwrap(llvm::orc::DynamicLibrarySearchGenerator::GetForCurrentProcess(lljit->getDataLayout().getGlobalPrefix())));
  }

  /// The object of one kernel, from disk or from LLVM.
  std::string object_of(const KernelText& kernel) {
    const std::string key = flags + "\n" + kernel.text;
    if (auto found = cache.find(key)) {
      const std::scoped_lock lock(mutex);
      ++counters.from_disk;
      return {reinterpret_cast<const char*>(found->data()), found->size()};
    }
    std::string object = compile(kernel, target), reason;
    const bool stored = cache.store(key, object, reason);
    const std::scoped_lock lock(mutex);
    ++counters.compiled;
    if (!stored && counters.cache_error.empty()) counters.cache_error = reason;
    return object;
  }
};

Jit::Jit(CpuLevel level, std::filesystem::path cache_folder) {
  initialize_llvm();
  state_ = std::make_unique<State>(level, std::move(cache_folder));
}
Jit::~Jit() = default;

const std::string& Jit::flags() const { return state_->flags; }

JitCounters Jit::counters() const {
  const std::scoped_lock lock(state_->mutex);
  return state_->counters;
}

std::vector<KernelFunction> Jit::load(std::span<const KernelText> texts, ThreadPool& pool) {
  std::map<std::string_view, const KernelText*> missing;
  {
    const std::scoped_lock lock(state_->mutex);
    for (const KernelText& text : texts)
      if (state_->loaded.count(text.name)) ++state_->counters.shared;
      else if (!missing.emplace(text.name, &text).second) ++state_->counters.shared;
  }
  std::vector<const KernelText*> work;
  for (const auto& [name, text] : missing) work.push_back(text);
  std::vector<std::string> objects(work.size());
  std::atomic<std::size_t> next = 0;
  // Compile times differ widely, so workers take kernels one by one.
  pool.parallel_for(pool.size(), 1, [&](std::int64_t, std::int64_t, int) {
    for (std::size_t i = next++; i < work.size(); i = next++) objects[i] = state_->object_of(*work[i]);
  });
  const std::scoped_lock lock(state_->mutex);
  for (std::size_t i = 0; i < work.size(); ++i) {
    if (state_->loaded.count(work[i]->name)) continue;  // another thread was faster
    check(state_->lljit->addObjectFile(llvm::MemoryBuffer::getMemBufferCopy(objects[i], work[i]->name)));
    state_->loaded[work[i]->name] = unwrap(state_->lljit->lookup(work[i]->name)).toPtr<KernelFunction>();
  }
  std::vector<KernelFunction> functions;
  for (const KernelText& text : texts) functions.push_back(state_->loaded.find(text.name)->second);
  return functions;
}

}  // namespace rlx::cpu
