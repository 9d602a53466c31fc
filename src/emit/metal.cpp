// The Metal shading language, which is C++ without f64: a thread computes one position of the grid.
#include "emit/c_dialect.h"

namespace rlx {
namespace {

// A kernel has few places for arguments of its own, so that it gets one: where its buffers lie, and the sizes.
constexpr CDialect metal{
    .name = "k",
    .header = "#include <metal_stdlib>\n#pragma clang fp contract(off)\nusing namespace metal;\n",
    .signed_integers = {"char", "short", "int", "long"},
    .unsigned_integers = {"uchar", "ushort", "uint", "ulong"},
    .long_suffix = "L",
    .nearest = "rint",
    .lanes = "#pragma unroll",
    .fused_sums = true,
    .bits = "const {T} {y} = as_type<{T}>({x});",
    .definition = "#ifndef {name}\n#define {name} {name}\n{text}#endif\n",
    .open = "struct Given_@NAME@ {\n",
    .buffer_parameter = "  device {T}* b{n};\n",
    .size_parameter = "  long s{n};\n",
    .close =
        "  long positions;\n};\nkernel void @NAME@(constant Given_@NAME@& given [[buffer(0)]], uint group "
        "[[threadgroup_position_in_grid]], "
        "uint lane [[thread_position_in_threadgroup]], uint lanes [[threads_per_threadgroup]]) {\n",
    .buffer = "  device {T}* const b{n} = given.b{n};\n",
    .size = "given.s{n}",
    .position = "  const {I} position = group * ({I})lanes + lane;\n  if (position >= given.positions) return;\n",
};

constexpr CDialect metal_body = [] {
  CDialect body = metal;
  body.open = metal_body_mark;
  body.buffer_parameter = body.size_parameter = body.buffer = {};
  body.close = "{\n";
  body.size = "sizes[{n}]";
  body.position = "  const {I} position = thread_position_in_grid.x;\n";
  return body;
}();

}  // namespace

KernelText emit_metal(const Kernel& kernel, const ScheduleOptions& options) { return print_c(kernel, metal, options); }
KernelText emit_metal_body(const Kernel& kernel, const ScheduleOptions& options) { return print_c(kernel, metal_body, options); }

}  // namespace rlx
