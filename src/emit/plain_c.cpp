// C11: the reference dialect.
#include "emit/c_dialect.h"

namespace rlx {
namespace {

constexpr CDialect plain_c{
    .name = "c",
    .header = "#include <math.h>\n#include <stdbool.h>\n#include <stdint.h>\n#include <string.h>\n\n",
    .signed_integers = {"int8_t", "int16_t", "int32_t", "int64_t"},
    .unsigned_integers = {"uint8_t", "uint16_t", "uint32_t", "uint64_t"},
    .long_suffix = "ll",
    .f32_suffix = "f",
    .nearest = "nearbyint",
    .fused_sums = false,
    .bits = "{T} {y};\n  memcpy(&{y}, &{x}, {size});",
    .definition = "{text}",
    .open = "void @NAME@(void* const* buffers, const int64_t* sizes, int64_t begin, int64_t end",
    .close = ") {\n  (void)sizes, (void)begin, (void)end;\n",
    .buffer = "  {T}* const b{n} = ({T}*)buffers[{n}];\n",
    .size = "sizes[{n}]",
};

}  // namespace

KernelText emit_c(const Kernel& kernel, const ScheduleOptions& options) { return print_c(kernel, plain_c, options); }

}  // namespace rlx
