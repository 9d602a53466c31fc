// Text of CUDA C++ by the compilers of GPUs, which need no GPU: NVRTC, and Clang for AMD's.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>

#include "backends/gpu/backend.h"
#include "backends/gpu/compile.h"
#include "backends/gpu/device.h"
#include "emit/texts_of_all_forms.h"
#include "formats/temporary_folder.h"
#include "quant/block_format.h"
#include "rlx/ops.h"
#include "runtime/executable.h"

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

/// A device of this compute capability that nobody has, as far as lowering asks.
TargetDevice target_of(gpu::Vendor vendor, int major, std::shared_ptr<const gpu::Compiler> compiler = nullptr) {
  gpu::Driver driver{};
  driver.vendor = vendor;
  if (vendor == gpu::Vendor::cuda)
    driver.EncodeBoxes = [](void*, int, unsigned, const std::byte*, const std::uint64_t*, const std::uint64_t*, const std::uint32_t*,
                            const std::uint32_t*, int, int, int, int) { return 1; };
  gpu::DeviceFacts facts;
  facts.driver = std::make_shared<const gpu::Driver>(driver);
  facts.compiler = std::move(compiler);
  facts.major = major;
  facts.units = 132;
  return gpu::backend_of(std::move(facts))->target({});
}

void add_products(Graph& graph) {
  for (const DType dtype : {f32, bf16, i8})
    for (const std::int64_t rows : {1, 20, 300})
      for (const bool transposed : {false, true}) {
        const std::string name = fmt::format("{}_{}_{}", std::string(rlx::name(dtype)), rows, transposed ? "t" : "n");
        const Value x = graph.input("x" + name, {rows, 512}, dtype);
        const Value w = graph.input("w" + name, transposed ? Dims{256, 512} : Dims{512, 256}, dtype);
        const DType wide = dtype == i8 ? i32 : dtype;
        graph.output("y" + name, relu(dot(cast(x, wide), cast(w, wide), {1}, {transposed ? 1 : 0})));
      }
}

void add_attentions(Graph& graph) {
  for (const DType dtype : {f32, bf16})
    for (const std::int64_t rows : {1, 256}) {
      const std::string name = fmt::format("a{}_{}", std::string(rlx::name(dtype)), rows);
      const Value q = graph.input("q" + name, {1, 8, rows, 128}, dtype);
      const Value k = graph.input("k" + name, {1, 2, 1024, 128}, dtype), v = graph.input("v" + name, {1, 2, 1024, 128}, dtype);
      graph.output(name, attention(q, k, v, {.causal = true}));
      graph.output(name + "_window", attention(q, k, v, {.softcap = 30, .causal = true, .window = 100}));
    }
}

void add_block_products(Graph& graph) {
  for (const char* type : {"Q8_0", "Q4_K", "IQ4_XS"}) {
    const BlockFormat& format = *find_block_format(type);
    const std::int64_t bytes = 512 / format.values * format.bytes;
    const Value w = graph.input(fmt::format("w{}", type), {128, bytes}, u8),
                ws = graph.input(fmt::format("ws{}", type), {4, 128, bytes}, u8);
    for (const std::int64_t rows : {1, 300}) {
      const Value x = graph.input(fmt::format("x{}_{}", type, rows), {rows, 512}, f32);
      const Value experts = graph.input(fmt::format("e{}_{}", type, rows), {rows}, i32);
      for (const bool int8 : {false, true}) graph.output(fmt::format("y{}_{}_{}", type, rows, int8), block_dot(x, w, type, int8));
      graph.output(fmt::format("g{}_{}", type, rows), grouped_block_dot(x, ws, experts, type, false));
    }
  }
}

/// Graphs of which claims make kernels, each in all forms that sizes and types choose among.
constexpr std::array added_claims{add_products, add_attentions, add_block_products};

LoweredGraph lowered(void (*add)(Graph&), const TargetDevice& target) {
  Graph graph("claims");
  add(graph);
  return lower_graph(graph, {}, target);
}

/// By name, as equal ones have one.
std::map<std::string, const KernelText*> texts_of(LoweredGraph& graph) {
  std::map<std::string, const KernelText*> texts;
  for (const GeneratedKernel* kernel : graph.program.kernels()) texts.emplace(kernel->text.name, &kernel->text);
  return texts;
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

/// Tiles of matrix units, of Hopper and of others.
TEST_P(Nvrtc, TakesTheKernelsOfClaims) {
  std::string reason;
  const auto compiler = gpu::open_compiler(gpu::Vendor::cuda, gpu::compiler_files(gpu::Vendor::cuda, 13000), reason);
  if (!compiler) GTEST_SKIP() << "needs NVRTC, such as that of PyPI's nvidia-cuda-nvrtc, in LD_LIBRARY_PATH: " << reason;
  const int level = std::atoi(GetParam() + 3);
  for (const auto add : added_claims) {
    LoweredGraph graph = lowered(add, target_of(gpu::Vendor::cuda, level / 10, compiler));
    std::vector<const KernelText*> all;
    for (const auto& [name, text] : texts_of(graph)) all.push_back(text);
    EXPECT_GT(all.size(), 5U);
    EXPECT_EQ(gpu::compile(*compiler, all, gpu::options_for(gpu::Vendor::cuda, GetParam())).error, "");
  }
}

/// What hipRTC defines by itself.
constexpr std::string_view hip_in_clang = R"(
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __launch_bounds__(n, ...) __attribute__((launch_bounds(n)))
#define __forceinline__ inline __attribute__((always_inline))
struct RlxPlace { unsigned x; };
#define threadIdx (RlxPlace{__builtin_amdgcn_workitem_id_x()})
#define blockIdx (RlxPlace{__builtin_amdgcn_workgroup_id_x()})
#define blockDim (RlxPlace{__builtin_amdgcn_workgroup_size_x()})
#define __shared__ __attribute__((shared))
#define __align__(n) __attribute__((aligned(n)))
struct __align__(8) uint2 { unsigned x, y; };
struct __align__(16) uint4 { unsigned x, y, z, w; };
struct __align__(16) float4 { float x, y, z, w; };
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

/// Whether Clang compiles texts for an architecture.
bool compiles(std::string_view texts, std::string_view architecture) {
  const TemporaryFolder folder;
  std::string all(hip_in_clang);
  for (const std::string name : {"fabs", "floor", "rint", "sqrt", "fma", "fmax", "exp2"})
    for (const std::string suffix : {"", "f"}) all += "#define " + name + suffix + " __builtin_" + name + suffix + "\n";
  for (const std::string& name : functions_of_libm())
    all += "__device__ float " + name + "f(float, float = 0);\n__device__ double " + name + "(double, double = 0);\n";
  write_text(folder / "kernels.hip", all.append(texts));
  const std::string command =
      fmt::format("clang++-19 -x hip --cuda-device-only -nogpulib -nogpuinc -O1 -S -ffp-contract=off --offload-arch={} {} -o {}",
                  architecture, (folder / "kernels.hip").string(), (folder / "kernels.s").string());
  return std::system(command.c_str()) == 0;
}

TEST_P(ClangHip, TakesEveryFormOfKernel) {
  if (std::system("clang++-19 --version > /dev/null 2>&1") != 0) GTEST_SKIP() << "needs clang++-19";
  std::string all;
  for (const KernelText& text : cuda_texts()) all += text.text;
  EXPECT_TRUE(compiles(all, GetParam()));
}

TEST_P(ClangHip, TakesTheKernelsOfClaims) {
  if (std::system("clang++-19 --version > /dev/null 2>&1") != 0) GTEST_SKIP() << "needs clang++-19";
  for (const auto add : added_claims) {
    LoweredGraph graph = lowered(add, target_of(gpu::Vendor::rocm, 9));
    std::string all;
    for (const auto& [name, text] : texts_of(graph)) all += text->text;
    EXPECT_GT(all.size(), 10000U);
    EXPECT_TRUE(compiles(all, GetParam()));
  }
}

}  // namespace
}  // namespace rlx::test
