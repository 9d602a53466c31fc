#include "backends/cpu/compiler.h"

#include <dlfcn.h>

#include <llvm/Config/llvm-config.h>

#include "rlx/error.h"
#include "rlx/version.h"

namespace rlx::cpu {
namespace {

/// How llvm/compiler.cpp compiles, beside the processor. It is part of every cache key: change it together with that file.
constexpr std::string_view pipeline =
    "default<O2>, bf16 at once, stores past the caches, position-independent, small code model, codegen default";

/// Levels that stand for one processor have no other; the others are compiled for what the machine has.
std::string processor_of(CpuLevel level) {
  return level == CpuLevel::portable || level == CpuLevel::avx2 ? std::string(to_string(level)) : cpu_identity();
}

}  // namespace

std::unique_ptr<Compiler> open_compiler(CpuLevel level) {
  // Found by this library's own search path, which is the folder that it is in. Never closed: LLVM leaves its own state behind.
  void* const library = dlopen(fmt::format("librlx_llvm-{}.so", version).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) fail("kernels cannot be compiled: {}", dlerror());
  const auto entry = reinterpret_cast<CompilerEntry>(dlsym(library, compiler_entry));
  if (!entry) fail_internal("jit: {}", dlerror());
  return std::unique_ptr<Compiler>(entry(level));
}

std::string compiler_flags(CpuLevel level) {
  return fmt::format("llvm {} {} {} {}", LLVM_VERSION_STRING, LLVM_DEFAULT_TARGET_TRIPLE, pipeline, processor_of(level));
}

}  // namespace rlx::cpu
