#pragma once
#include <string>

#include "kernel/compiled.h"

// Kernels of OpenCL as functions: C, with the vectors of Clang, in which every work item is a call.
namespace rlx::test {

/// What OpenCL C has and C has not. Texts may stand in one file.
inline constexpr std::string_view opencl_in_c = R"(#ifndef opencl_in_c
#define opencl_in_c
#pragma GCC diagnostic ignored "-Wunknown-pragmas"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wunused-variable"
#pragma GCC diagnostic ignored "-Wpsabi"
#pragma GCC diagnostic ignored "-Wpass-failed"
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
typedef float float2 __attribute__((ext_vector_type(2)));
typedef float float4 __attribute__((ext_vector_type(4)));
typedef float float8 __attribute__((ext_vector_type(8)));
typedef float float16 __attribute__((ext_vector_type(16)));
static inline float16 fma16(float16 a, float16 b, float16 c) {
  float16 y;
  for (int i = 0; i < 16; ++i) y[i] = fmaf(a[i], b[i], c[i]);
  return y;
}
#undef fma
#define fma(a, b, c) _Generic((a), float16: fma16, float: fmaf, double: (fma))(a, b, c)
typedef ushort ushort16 __attribute__((ext_vector_type(16)));
typedef uint uint16 __attribute__((ext_vector_type(16)));
static inline float16 load16(const float* from) {
  float16 y;
  memcpy(&y, from, sizeof y);
  return y;
}
static inline ushort16 load16_short(const ushort* from) {
  ushort16 y;
  memcpy(&y, from, sizeof y);
  return y;
}
#define vload16(at, from) _Generic((from), ushort*: load16_short, const ushort*: load16_short, default: load16)((from) + 16 * (at))
#define convert_uint16(x) __builtin_convertvector(x, uint16)
static inline float16 as_float16(uint16 x) {
  float16 y;
  memcpy(&y, &x, sizeof y);
  return y;
}
typedef _Float16 half;
static inline float16 load16_half(const half* from) {
  float16 y;
  for (int i = 0; i < 16; ++i) y[i] = from[i];
  return y;
}
#define vload_half16(at, from) load16_half((from) + 16 * (at))
#define vstore16(x, at, to)                   \
  do {                                        \
    const float16 stored = x;                 \
    memcpy((to) + 16 * (at), &stored, 64);    \
  } while (0)
static _Thread_local ulong item;
static inline ulong get_global_id(uint axis) { return item + axis; }
#endif
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
