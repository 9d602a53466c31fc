// Kernels of a GPU: launches, what is shared, what is kept on disk, and what a compiler refuses.
#include "backends/gpu_device.h"

namespace rlx::test {
namespace {

namespace fs = std::filesystem;

class GpuKernels : public EachGpuTest {
 protected:
  void expect_affine(DeviceKernels& kernels, std::size_t kernel, int added, std::size_t positions) const {
    std::vector<float> x(positions);
    for (std::size_t i = 0; i < positions; ++i) x[i] = static_cast<float>(i + 1);
    const auto in = uploaded(x), out = memory().allocate(static_cast<std::int64_t>(4 * positions));
    const std::vector<std::byte*> buffers{in.get(), out.get()};
    kernels.launch(kernel, buffers, std::vector<std::int64_t>{3}, static_cast<std::int64_t>(positions));
    const auto seen = downloaded(out.get(), positions);
    for (std::size_t i = 0; i < positions; ++i) ASSERT_EQ(seen[i], static_cast<float>((i + 1) * 3) + static_cast<float>(added));
  }
  CompileCounters load_in(const fs::path& folder) const {
    const std::vector<KernelText> texts{affine_cuda_kernel(100), affine_cuda_kernel(101)};
    const auto kernels = memory().load(texts, folder);
    expect_affine(*kernels, 1, 101, 100);
    return kernels->counters;
  }
};
INSTANTIATE_TEST_SUITE_P(EachVendor, GpuKernels, testing::Values("cuda", "rocm"), [](const auto& info) { return std::string(info.param); });

TEST_P(GpuKernels, ComputeEachPositionOnce) {
  const std::vector<KernelText> texts{affine_cuda_kernel(1), affine_cuda_kernel(2)};
  const auto kernels = memory().load(texts, {});
  for (const std::size_t positions : {1u, 2u, 63u, 64u, 65u, 511u, 512u, 513u, 5000u, 100003u}) {
    expect_affine(*kernels, 0, 1, positions);
    expect_affine(*kernels, 1, 2, positions);
  }
}

TEST_P(GpuKernels, BuffersBeginWhereTheirAddressesSay) {
  const KernelText text = affine_cuda_kernel(5);
  const auto kernels = memory().load({&text, 1}, {});
  const auto bytes = uploaded(std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7});
  const std::vector<std::byte*> buffers{bytes.get() + 4, bytes.get() + 20};
  kernels->launch(0, buffers, std::vector<std::int64_t>{10}, 2);
  kernels->launch(0, buffers, std::vector<std::int64_t>{10}, 0);
  EXPECT_EQ(downloaded(bytes.get(), 8), (std::vector<float>{0, 1, 2, 3, 4, 15, 25, 7}));
  const std::vector<std::byte*> between{bytes.get() + 2, bytes.get()};
  EXPECT_THROW(kernels->launch(0, between, std::vector<std::int64_t>{1}, 1), InternalError);
  EXPECT_THROW(kernels->launch(0, {buffers.data(), 1}, std::vector<std::int64_t>{1}, 1), InternalError);
}

TEST_P(GpuKernels, EqualTextsAreLoadedOnce) {
  const std::vector<KernelText> twice{affine_cuda_kernel(20), affine_cuda_kernel(21), affine_cuda_kernel(20)};
  const auto kernels = memory().load(twice, {});
  EXPECT_EQ(kernels->counters.kernels_compiled, 2);
  EXPECT_EQ(kernels->counters.kernels_shared, 1);
  const auto again = memory().load({twice.data(), 2}, {});
  EXPECT_EQ(again->counters.kernels_compiled, 0);
  expect_affine(*kernels, 2, 20, 10);
  expect_affine(*again, 1, 21, 10);
}

TEST_P(GpuKernels, AreFoundOnDiskUnlessTheFileIsDamaged) {
  const TemporaryFolder folder;
  EXPECT_EQ(load_in(folder.path()).kernels_compiled, 2);
  EXPECT_EQ(load_in(folder.path()).kernels_from_disk, 2);
  ASSERT_EQ(std::distance(fs::directory_iterator(folder.path()), {}), 1);
  const fs::path file = fs::directory_iterator(folder.path())->path();
  fs::resize_file(file, fs::file_size(file) / 2);
  EXPECT_EQ(load_in(folder.path()).kernels_compiled, 2);
  EXPECT_EQ(load_in(folder.path()).kernels_from_disk, 2);
}

TEST_P(GpuKernels, WhatTheCompilerRefusesIsNamedWithItsLog) {
  std::vector<KernelText> texts{affine_cuda_kernel(30), affine_cuda_kernel(31), affine_cuda_kernel(32)};
  texts[1].text += "__device__ int wrong() { return undeclared_name; }\n";
  const std::string error = error_of([&] { memory().load(texts, {}); });
  for (const char* part : {":0 (", "refuses kernel affine_31 for ", "rlx dump --stage kernels --device ", "undeclared_name"})
    EXPECT_NE(error.find(part), std::string::npos) << error;
  texts[1] = affine_cuda_kernel(31);
  expect_affine(*memory().load(texts, {}), 1, 31, 10);
}

class GpusOfOtherCompilers : public GpuTest {};

TEST_F(GpusOfOtherCompilers, DoNotTakeEachOthersBinaries) {
  const TemporaryFolder folder;
  const std::vector<KernelText> texts{affine_cuda_kernel(40)};
  EXPECT_EQ(memory().load(texts, folder.path())->counters.kernels_compiled, 1);
  const auto newer = first_gpu_with([](gpu::DeviceFacts& facts) { facts.version += ".1"; });
  EXPECT_EQ(newer->memory()->load(texts, folder.path())->counters.kernels_compiled, 1);
  EXPECT_EQ(newer->memory()->load(texts, folder.path())->counters.kernels_from_disk, 1);
}

}  // namespace
}  // namespace rlx::test
