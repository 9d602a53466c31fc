// OpenCL C 1.2: a work item computes one position of the grid.
#include "emit/c_dialect.h"

namespace rlx {
namespace {

/// Where Clang compiles for AVX-512, two of its instructions multiply 64 numbers, and the bytes of a lane come side by side before.
constexpr std::string_view dots = R"(#if defined(__AVX512BW__)
typedef char rlx_bytes __attribute__((vector_size(64), aligned(1), may_alias));
typedef short rlx_pairs __attribute__((vector_size(64)));
typedef int rlx_fours __attribute__((vector_size(64), aligned(4), may_alias));
#define rlx_lane(n) n, n + 16, n + 32, n + 48
#define rlx_lanes(n) rlx_lane(n), rlx_lane(n + 1), rlx_lane(n + 2), rlx_lane(n + 3)
static inline void rlx_dots(int* sums, const uchar* codes, __global const char* x, const char less) {
  const rlx_bytes c = *(const rlx_bytes*)codes;
  const rlx_bytes turned = __builtin_shufflevector(c, c, rlx_lanes(0), rlx_lanes(4), rlx_lanes(8), rlx_lanes(12));
  const rlx_fours y = (rlx_fours){} + as_int(vload4(0, x));
  const rlx_pairs ones = (rlx_pairs){} + (short)1, all = __builtin_ia32_pmaddubsw512(turned, (rlx_bytes)y);
  *(rlx_fours*)sums += __builtin_ia32_pmaddwd512(all - __builtin_ia32_pmaddubsw512((rlx_bytes){} + less, (rlx_bytes)y), ones);
}
#else
static inline void rlx_dots(int* sums, const uchar* codes, __global const char* x, const char less) {
  for (int i = 0; i < 16; ++i)
    sums[i] += (codes[i] - less) * x[0] + (codes[i + 16] - less) * x[1] + (codes[i + 32] - less) * x[2] + (codes[i + 48] - less) * x[3];
}
#endif
)";

constexpr CDialect opencl{
    .name = "k",
    .header = "#pragma OPENCL FP_CONTRACT OFF\n",
    .f64_header = "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n",
    .signed_integers = {"char", "short", "int", "long"},
    .unsigned_integers = {"uchar", "ushort", "uint", "ulong"},
    .long_suffix = "L",
    .nearest = "rint",
    .lanes = "#pragma clang loop vectorize(assume_safety) vectorize_width({n})",  // unknown elsewhere, and left aside
    .vector = "float{n}",
    .vector_load = "vload{n}(0, {p})",
    .f16_load = "vload_half{n}(0, (__global const half*){p})",
    .bf16_load = "as_float{n}(convert_uint{n}(vload{n}(0, {p})) << 16)",
    .vector_store = "vstore{n}({x}, 0, {p})",
    .vector_fold = "{x}.lo + {x}.hi",
    .dots = dots,
    .fused_sums = true,
    .bits = "const {T} {y} = as_{T}({x});",
    .definition = "#ifndef {name}\n#define {name} {name}\n{text}#endif\n",
    .open = "__kernel void @NAME@(",
    .buffer_parameter = "__global {T}* b{n}, const long o{n}, ",
    .size_parameter = "const long s{n}, ",
    .close = "const long positions) {\n",
    .buffer = "  b{n} += o{n};\n",
    .size = "s{n}",
    .position = "  const {I} position = get_global_id(0);\n  if (position >= positions) return;\n",
};

}  // namespace

KernelText emit_opencl(const Kernel& kernel, const ScheduleOptions& options) { return print_c(kernel, opencl, options); }

}  // namespace rlx
