#pragma once
#include <string>

#include "emit/metal_in_cpp.h"
#include "kernel/compiled.h"

namespace rlx::test {

/// Metal has no such functions: generated programs have formulas in their place, kernels of single ops in tests call them.
inline constexpr std::string_view missing_in_metal = R"(#ifndef missing_in_metal
#define missing_in_metal
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wunused-variable"
#pragma GCC diagnostic ignored "-Wunused-parameter"
static inline float expm1(float x) { return __builtin_expm1f(x); }
static inline float log1p(float x) { return __builtin_log1pf(x); }
static inline float erf(float x) { return __builtin_erff(x); }
#endif
)";

/// A text of C++ that defines a KernelFunction: it calls the kernel for the positions, and for some behind them, in no order.
inline KernelText metal_as_cpp(const Kernel& kernel, const KernelText& metal) {
  const std::string name = "run_" + metal.name;
  std::string words;
  for (std::size_t i = 0; i < kernel.buffers.size(); ++i) words += fmt::format("(long)buffers[{}], ", i);
  for (std::size_t i = 0; i < kernel.symbols.size(); ++i) words += fmt::format("sizes[{}], ", i);
  std::string text = std::string(threads_in_cpp) + std::string(missing_in_metal) + metal.text + metal_runner(metal.name);
  text += fmt::format("extern \"C\" void {}(void* const* buffers, const long* sizes, long, long end) {{\n", name);
  text += "  long words[] = {" + words + "end};\n  long* given = words;\n  void* arguments[] = {&given};\n";
  text += fmt::format("  run_all_of_{}(arguments, (unsigned)(end / 64 + 2), 64, 17);\n}}\n", metal.name);
  return {name, std::move(text), metal.grid};
}

}  // namespace rlx::test
