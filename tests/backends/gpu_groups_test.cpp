// Kernels whose threads work together, and what the GPU that is none makes of those that do not wait where they must.
#include <dlfcn.h>

#include <cmath>
#include <numeric>

#include "backends/gpu_device.h"

namespace rlx::test {
namespace {

constexpr int lanes = 256;

/// b1[row] is made of the 256 numbers of each row of b0 by `body`.
KernelText group_kernel(const std::string& name, const std::string& body, int on_chip_bytes = 0) {
  return {.name = name,
          .text = "extern \"C\" __global__ void __launch_bounds__(256) " + name +
                  "(const float* b0, float* b1, const long long positions) {\n"
                  "  const int lane = threadIdx.x;\n  float x = b0[blockIdx.x * 256LL + lane];\n" +
                  body + "  if (lane == 0) b1[blockIdx.x] = x;\n}\n",
          .element_bytes = {4, 4},
          .group = lanes,
          .on_chip_bytes = on_chip_bytes};
}

std::string tree(const std::string& barrier) {
  return "  __shared__ float kept[256];\n  kept[lane] = x;\n" + barrier +
         "  for (int half = 128; half > 0; half /= 2) {\n"
         "    if (lane < half) kept[lane] += kept[lane + half];\n" +
         barrier + "  }\n  x = kept[0];\n";
}

class GpuGroups : public EachGpuTest {
 protected:
  std::vector<float> rows(const KernelText& text, std::size_t count) const {
    std::vector<float> x(count * lanes);
    std::iota(x.begin(), x.end(), 0.0F);
    const auto in = uploaded(x), out = memory().allocate(static_cast<std::int64_t>(4 * count));
    const std::vector<std::byte*> buffers{in.get(), out.get()};
    const auto kernels = memory().load({&text, 1}, {});
    kernels->launch(0, buffers, {}, static_cast<std::int64_t>(count));
    return downloaded(out.get(), count);
  }
  static std::vector<float> sums(std::size_t count) {
    std::vector<float> all;
    for (std::size_t row = 0; row < count; ++row) all.push_back(static_cast<float>(row * 65536 + 32640));
    return all;
  }
  /// Others compute at once, or hang.
  void needs_no_gpu() const {
    if (backend().description().find("Fake GPU") == std::string::npos) GTEST_SKIP() << "only a GPU that is none shows it";
  }
};
INSTANTIATE_TEST_SUITE_P(EachVendor, GpuGroups, testing::Values("cuda", "rocm"), [](const auto& info) { return std::string(info.param); });

TEST_P(GpuGroups, WaitForEachOther) { EXPECT_EQ(rows(group_kernel("tree", tree("  __syncthreads();\n")), 7), sums(7)); }

TEST_P(GpuGroups, HaveTheMemoryOfTheirLaunch) {
  std::string body = tree("  __syncthreads();\n");
  body.replace(0, body.find(';') + 1, "  extern __shared__ float kept[];");
  EXPECT_EQ(rows(group_kernel("launched", body, 1024), 7), sums(7));
}

TEST_P(GpuGroups, ExchangeNumbers) {
  const bool is_cuda = std::string(GetParam()) == "cuda";
  const std::string shuffle = is_cuda ? "__shfl_xor_sync(0xffffffffu, " : "__shfl_xor(";
  const std::string body = "  __shared__ float kept[8];\n  for (int bit = 16; bit > 0; bit /= 2) x += " + shuffle +
                           "x, bit);\n"
                           "  if (lane % 32 == 0) kept[lane / 32] = x;\n  __syncthreads();\n"
                           "  x = 0;\n  for (int i = 0; i < 8; ++i) x += kept[i];\n";
  EXPECT_EQ(rows(group_kernel("exchanged", body), 7), sums(7));
}

TEST_P(GpuGroups, AMissingBarrierShows) {
  if (needs_no_gpu(); IsSkipped()) return;
  EXPECT_NE(rows(group_kernel("raced", tree("")), 7), sums(7));
}

TEST_P(GpuGroups, MemoryOnChipIsUnset) {
  if (needs_no_gpu(); IsSkipped()) return;
  const auto is_unset = [&](const std::string& declared) {
    const std::string body = declared + "  x = kept[lane];\n  __syncthreads();\n  kept[lane] = 1;\n";
    return std::ranges::all_of(rows(group_kernel("unset", body, 1024), 3), [](float x) { return std::isnan(x); });
  };
  EXPECT_TRUE(is_unset("  extern __shared__ float kept[];\n"));
  if (dlsym(RTLD_DEFAULT, "__asan_init")) return;  // which watches arrays that have a size, and poisons none
  EXPECT_TRUE(is_unset("  __shared__ float kept[256];\n"));
}

TEST_P(GpuGroups, ABarrierThatNotAllReachIsAnError) {
  if (needs_no_gpu(); IsSkipped()) return;
  const KernelText text = group_kernel("left", "  if (lane == 77) return;\n  __syncthreads();\n");
  EXPECT_NE(error_of([&] { rows(text, 1); }).find("LAUNCH_TIMEOUT"), std::string::npos);
}

}  // namespace
}  // namespace rlx::test
