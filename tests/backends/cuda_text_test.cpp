// Text of CUDA C++ by the compilers of GPUs, which need no GPU: NVRTC, and Clang for AMD's.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "backends/gpu/compile.h"
#include "emit/texts_of_all_forms.h"
#include "formats/temporary_folder.h"

namespace rlx::test {
namespace {

/// As a lane computes them, and as a group of lanes does where that has work for one.
std::vector<KernelText> cuda_texts() {
  std::vector<KernelText> all = texts_of_all_forms([](const Kernel& kernel) { return emit_cuda(kernel); });
  for (KernelText& text : texts_of_all_forms([](const Kernel& kernel) { return emit_cuda(kernel, {.lanes = true, .group = 512}); }))
    if (text.group > 0) all.push_back(std::move(text));
  EXPECT_GT(std::ranges::count_if(all, [](const KernelText& text) { return text.group > 0; }), 5);
  return all;
}

class Nvrtc : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Architectures, Nvrtc, testing::Values("sm_80", "sm_90a", "sm_100"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(Nvrtc, TakesEveryFormOfKernel) {
  std::string reason;
  const auto compiler = gpu::open_compiler(gpu::Vendor::cuda, gpu::compiler_files(gpu::Vendor::cuda, 13000), reason);
  if (!compiler) GTEST_SKIP() << "needs NVRTC, such as that of PyPI's nvidia-cuda-nvrtc, in LD_LIBRARY_PATH: " << reason;
  const std::vector<KernelText> texts = cuda_texts();
  EXPECT_GT(texts.size(), 30U);
  std::vector<const KernelText*> all;
  for (const KernelText& text : texts) all.push_back(&text);
  const gpu::CompiledTexts compiled = gpu::compile(*compiler, all, gpu::options_for(gpu::Vendor::cuda, GetParam()));
  EXPECT_EQ(compiled.error, "");
  EXPECT_GT(compiled.binary.size(), 10000U);
}

/// What hipRTC defines by itself.
constexpr std::string_view hip_in_clang = R"(
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __launch_bounds__(n) __attribute__((launch_bounds(n)))
struct RlxPlace { unsigned x; };
#define threadIdx (RlxPlace{__builtin_amdgcn_workitem_id_x()})
#define blockIdx (RlxPlace{__builtin_amdgcn_workgroup_id_x()})
#define blockDim (RlxPlace{__builtin_amdgcn_workgroup_size_x()})
#define __shared__ __attribute__((shared))
#define __align__(n) __attribute__((aligned(n)))
struct __align__(8) uint2 { unsigned x, y; };
struct __align__(16) uint4 { unsigned x, y, z, w; };
__device__ static inline void __syncthreads() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
template <class T> __device__ static inline T __shfl_xor(T value, int bits) {
  int parts[(sizeof(T) + 3) / 4] = {};
  __builtin_memcpy(parts, &value, sizeof value);
  const int from = __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0u)) ^ bits;
  for (int& part : parts) part = __builtin_amdgcn_ds_bpermute(4 * from, part);
  __builtin_memcpy(&value, parts, sizeof value);
  return value;
}
#define memcpy __builtin_memcpy
#define signbit __builtin_signbit
__device__ static inline float __int_as_float(int bits) { return __builtin_bit_cast(float, bits); }
)";

/// Clang has the functions of libm for no GPU, so that only texts without them are tried; generated programs have none.
std::vector<std::string> functions_of_libm() {
  return {"exp", "expm1", "log", "log1p", "sin", "cos", "tanh", "atan", "erf", "pow", "fmod"};
}

class ClangHip : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Architectures, ClangHip, testing::Values("gfx90a", "gfx942", "gfx1030", "gfx1100"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(ClangHip, TakesEveryFormOfKernel) {
  if (std::system("clang++-19 --version > /dev/null 2>&1") != 0) GTEST_SKIP() << "needs clang++-19";
  const TemporaryFolder folder;
  std::string all(hip_in_clang);
  for (const std::string name : {"fabs", "floor", "rint", "sqrt", "fma"})
    for (const std::string suffix : {"", "f"}) all += "#define " + name + suffix + " __builtin_" + name + suffix + "\n";
  for (const std::string& name : functions_of_libm())
    all += "__device__ float " + name + "f(float, float = 0);\n__device__ double " + name + "(double, double = 0);\n";
  for (const KernelText& text : cuda_texts()) all += text.text;
  write_text(folder / "kernels.hip", all);
  const std::string command =
      "clang++-19 -x hip --cuda-device-only -nogpulib -nogpuinc -O1 -S -ffp-contract=off --offload-arch=" + std::string(GetParam()) + " " +
      (folder / "kernels.hip").string() + " -o " + (folder / "kernels.s").string();
  EXPECT_EQ(std::system(command.c_str()), 0);
}

}  // namespace
}  // namespace rlx::test
