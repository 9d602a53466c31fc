#pragma once
#include <string>

#include "emit/cuda_in_cpp.h"
#include "kernel/compiled.h"

namespace rlx::test {

/// A text of C++ that defines a KernelFunction: it calls the kernel for the positions, and for some behind them, in no order.
inline KernelText cuda_as_cpp(const Kernel& kernel, const KernelText& cuda) {
  const std::string name = "run_" + cuda.name;
  std::string arguments;
  for (std::size_t i = 0; i < kernel.buffers.size(); ++i) arguments += fmt::format("(void*)&buffers[{}], ", i);
  for (std::size_t i = 0; i < kernel.symbols.size(); ++i) arguments += fmt::format("(void*)&sizes[{}], ", i);
  std::string text = std::string(threads_in_cpp) + std::string(cuda_in_cpp) + cuda.text;
  text += fmt::format("extern \"C\" void {}(void* const* buffers, const long* sizes, long, long end) {{\n", name);
  text += "  void* arguments[] = {" + arguments + "&end};\n";
  text += fmt::format("  run_threads({}, {{arguments, (unsigned)(end / 64 + 2), 64, 32, 17, 0, 0, 0}});\n}}\n", cuda.name);
  return {name, std::move(text), cuda.grid};
}

}  // namespace rlx::test
