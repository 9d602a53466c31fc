// OpenCL C 1.2: a work item computes one position of the grid.
#include "emit/c_dialect.h"

namespace rlx {
namespace {

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
