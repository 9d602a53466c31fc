#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "backends/cpu/linked_kernel.h"
#include "backends/cpu/machine/cpu_features.h"
#include "emit/emit.h"

namespace rlx::cpu {

/// LLVM, which is in a shared library of its own (llvm/compiler.cpp): a process that compiles nothing does not pay for its 120 MB.
class Compiler {
 public:
  Compiler() = default;
  Compiler(const Compiler&) = delete;
  Compiler& operator=(const Compiler&) = delete;
  virtual ~Compiler() = default;

  /// A relocatable object with the kernel's machine code. Any thread may call. Throws InternalError for text that means nothing.
  virtual std::string compile(const KernelText& kernel) const = 0;
  /// The function `name` of an object; its code lives as long as the compiler. For objects that LinkedKernel does not know, such as those
  /// of other architectures. One thread at a time.
  virtual KernelFunction link(std::string_view object, const std::string& name) = 0;
};

/// Loads the library where the process has not done so yet. Throws Error where it is not beside this one.
std::unique_ptr<Compiler> open_compiler(CpuLevel level);

/// The compiler, its version, how it compiles, and the processor that it does so for, found without loading it: objects of equal texts are
/// interchangeable where these are equal.
std::string compiler_flags(CpuLevel level);

/// The one function of that library, under the name `compiler_entry`.
using CompilerEntry = Compiler* (*)(CpuLevel level);
inline constexpr const char* compiler_entry = "rlx_make_compiler";

}  // namespace rlx::cpu
