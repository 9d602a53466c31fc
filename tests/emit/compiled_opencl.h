#pragma once
#include <string>

#include "kernel/compiled.h"

// Kernels of OpenCL as functions: C in which every work item is a call.
namespace rlx::test {

/// What OpenCL C has and C has not.
inline constexpr std::string_view opencl_in_c = R"(#pragma GCC diagnostic ignored "-Wunknown-pragmas"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wunused-function"
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <tgmath.h>
#define __kernel
#define __global
typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
#define BITS(name, from, to)          \
  static inline to name(from x) {     \
    to y;                             \
    memcpy(&y, &x, sizeof y);         \
    return y;                         \
  }
BITS(as_int, float, int)
BITS(as_uint, float, uint)
BITS(as_float, uint, float)
BITS(as_long, double, long)
BITS(as_ulong, double, ulong)
BITS(as_double, ulong, double)
static _Thread_local ulong item;
static inline ulong get_global_id(uint axis) { return item + axis; }
)";

/// A text of C that defines a KernelFunction: it calls the kernel for the positions, and for some behind them, in no order.
/// Every buffer begins a few elements before its first.
inline KernelText opencl_as_c(const Kernel& kernel, const KernelText& opencl) {
  const std::string name = "run_" + opencl.name;
  std::string call;
  for (std::size_t i = 0; i < kernel.buffers.size(); ++i) {
    const int bytes = info(kernel.buffers[i].dtype).bits / 8;
    call += fmt::format("(void*)((char*)buffers[{}] - {}), 3, ", i, 3 * bytes);
  }
  for (std::size_t i = 0; i < kernel.symbols.size(); ++i) call += fmt::format("sizes[{}], ", i);
  std::string text = std::string(opencl_in_c) + opencl.text;
  text += fmt::format("void {}(void* const* buffers, const int64_t* sizes, int64_t begin, int64_t end) {{\n", name);
  text += "  const ulong items = (ulong)((end + 64) / 64 * 64), prime = 1000003;\n";
  text += "  for (ulong i = (ulong)begin; i < items; ++i) {\n    item = (i * prime + 17) % items;\n";
  text += fmt::format("    {}({}end);\n  }}\n}}\n", opencl.name, call);
  return {name, std::move(text), opencl.grid};
}

}  // namespace rlx::test
