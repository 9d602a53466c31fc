// CUDA C++, which is also HIP's: a thread computes one position of the grid, or those of a block do.
#include "emit/c_dialect.h"
#include "emit/cuda_function.h"

namespace rlx {
namespace {

// NVRTC has no fixed-width integers and no names of infinities without headers; NaN is the one that operations make.
constexpr CDialect cuda{
    .name = "k",
    .header = "#ifndef INFINITY\n#define INFINITY __int_as_float(0x7f800000)\n#define NAN __int_as_float(0x7fc00000)\n#endif\n",
    .signed_integers = {"signed char", "short", "int", "long long"},
    .unsigned_integers = {"unsigned char", "unsigned short", "unsigned", "unsigned long long"},
    .long_suffix = "ll",
    .f32_suffix = "f",
    .nearest = "rint",
    .lanes = "#pragma unroll",
    .fused_sums = true,
    .bits = "{T} {y};\n  memcpy(&{y}, &{x}, {size});",
    .f16_to_f32 =
        "\n#ifdef __CUDACC__\nstatic inline float rlx_f16_to_f32(unsigned short x) {{\n  float y;\n"
        "  asm(\"cvt.f32.f16 %0, %1;\" : \"=f\"(y) : \"h\"(x));\n  return y;\n}}\n#else\n{text}#endif\n",
    .definition = "#ifndef {name}\n#define {name} {name}\n__device__ {text}#endif\n",
    .open = "extern \"C\" __global__ void __launch_bounds__(256) @NAME@(",
    .buffer_parameter = "{T}* b{n}, ",
    .size_parameter = "const long long s{n}, ",
    .close = "const long long positions) {\n",
    .size = "s{n}",
    .group_header =
        "#ifndef rlx_exchange\n#ifdef __HIP__\n#define rlx_exchange(x, bits) __shfl_xor(x, bits)\n"
        "#define rlx_wait_for_warp() __builtin_amdgcn_wave_barrier()\n#else\n"
        "#define rlx_exchange(x, bits) __shfl_xor_sync(0xffffffffu, x, bits)\n#define rlx_wait_for_warp() __syncwarp()\n"
        "#endif\n#endif\n",
    .group_open = "extern \"C\" __global__ void __launch_bounds__({n}) @NAME@(",
    .aligned_buffer = "  b{n} = ({T}*)__builtin_assume_aligned(b{n}, 16);\n",
    .group_position = "  const {I} position = blockIdx.x;\n",
    .group_lane = "(int)(threadIdx.x % {n})",
    .group_row = "(threadIdx.x / {n})",
    .exchange = "rlx_exchange({x}, {n})",
    .on_chip = "__shared__ {T} {name}[{n}];",
    .aligned_array = "__align__(16) {T} {name}[{n}];",
    .barrier = "__syncthreads();",
    .warp_barrier = "rlx_wait_for_warp();",
    .pieces = {"unsigned char", "unsigned short", "unsigned", "uint2", "uint4"},
    .position = "  const {I} position = blockIdx.x * ({I})blockDim.x + threadIdx.x;\n  if (position >= positions) return;\n",
};

constexpr CDialect cuda_function = [] {
  CDialect dialect = cuda;
  dialect.open = "static __device__ __forceinline__ void @NAME@(";
  dialect.position = "";
  return dialect;
}();

}  // namespace

const CDialect& cuda_dialect() { return cuda; }
KernelText emit_cuda_function(const Kernel& tile) { return print_c(tile, cuda_function, {}); }

KernelText emit_cuda(const Kernel& kernel, const ScheduleOptions& options) { return print_c(kernel, cuda, options); }

}  // namespace rlx
