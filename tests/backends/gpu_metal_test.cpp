// Metal: its memory, its kernels, and graphs.
#include <cstdlib>
#include <numeric>
#include <thread>

#include "backends/metal_device.h"
#include "backends/registry_samples.h"
#include "rlx/ops.h"

namespace rlx::test {
namespace gpu_metal_test {

namespace fs = std::filesystem;

std::vector<float> counted(std::size_t count, float first = 0) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), first);
  return values;
}

class MetalMemory : public MetalTest {};

TEST_F(MetalMemory, GivesBackWhatWasWritten) {
  for (const std::size_t count : {std::size_t{1}, std::size_t{1000}, std::size_t{1} << 20}) {
    std::vector<float> values = counted(count, 3);
    const auto there = uploaded(values);
    values.assign(count, 0);  // it may change once upload returns
    EXPECT_EQ(downloaded(there.get(), count), counted(count, 3));
  }
}

class MetalKernels : public MetalTest {
 protected:
  void launch(DeviceKernels& kernels, std::byte* from, std::byte* to, std::int64_t factor, std::int64_t positions) const {
    const std::vector<std::byte*> buffers{from, to};
    kernels.launch(0, buffers, {&factor, 1}, positions);
  }
  CompileCounters load_in(const fs::path& folder) const {
    const std::vector<KernelText> texts{affine_metal_kernel(101), affine_metal_kernel(100)};
    const auto kernels = memory().load(texts, folder);
    const auto x = uploaded(counted(100)), y = memory().allocate(400);
    launch(*kernels, x.get(), y.get(), 1, 100);
    EXPECT_EQ(downloaded(y.get(), 100), counted(100, 101));
    return kernels->counters;
  }
};

/// In the queue and by the host, at places that the queue takes and at others.
TEST_F(MetalKernels, AndCopiesAreDoneInTheOrderInWhichTheyWereAsked) {
  const KernelText text = affine_metal_kernel(1);
  const auto kernels = memory().load({&text, 1}, {});
  const auto bytes = uploaded(counted(100)), other = uploaded(counted(100));
  for (const bool busy : {false, true}) {
    if (busy) launch(*kernels, other.get(), other.get(), 1, 100);
    const std::vector<float> first = counted(100), two{-1, -2};
    memory().upload(bytes.get(), std::as_bytes(std::span(first)));
    memory().upload(bytes.get() + 40, std::as_bytes(std::span(two)));
    if (busy) launch(*kernels, bytes.get() + 40, bytes.get() + 40, 1, 2);
    memory().copy(bytes.get() + 200, bytes.get() + 36, 12);
    memory().clear(bytes.get() + 61, 7);
    memory().clear(bytes.get() + 72, 4);
    auto expected = counted(100);
    expected[10] = busy ? 0 : -1, expected[11] = busy ? -1 : -2;
    expected[50] = 9, expected[51] = expected[10], expected[52] = expected[11], expected[16] = 0, expected[18] = 0;
    auto seen = downloaded(bytes.get(), 100);
    seen[15] = 15;  // of it three bytes are cleared
    EXPECT_EQ(seen, expected) << busy;
    EXPECT_EQ(downloaded(bytes.get() + 36, 3), (std::vector<float>{9, expected[10], expected[11]}));
  }
  EXPECT_EQ(downloaded(other.get(), 100), counted(100, 1));
}

TEST_F(MetalKernels, ReadMemoryOfTheHostWhereItLies) {
  const KernelText text = affine_metal_kernel(2);
  const auto kernels = memory().load({&text, 1}, {});
  auto values = std::make_shared<std::vector<float>>(counted(1 << 16));
  const auto y = memory().allocate(4 << 16);
  const std::span<const float> shifted = std::span(*values).subspan(5);
  auto x = memory().wrap(std::as_bytes(shifted), values), twice = memory().wrap(std::as_bytes(shifted), values);
  ASSERT_NE(x, nullptr);
  ASSERT_NE(twice.get(), x.get());
  (*values)[6] = 40;  // no copy was made
  launch(*kernels, x.get(), y.get(), 1, 100);
  EXPECT_EQ(downloaded(y.get(), 3), (std::vector<float>{7, 42, 9}));
  EXPECT_EQ(values.use_count(), 3);
  launch(*kernels, x.get(), y.get(), 2, 100);
  x.reset();
  twice.reset();
  EXPECT_EQ(values.use_count(), 1);
  values.reset();
  EXPECT_EQ(downloaded(y.get(), 3), (std::vector<float>{12, 82, 16}));
  const std::vector<float> little(100);
  EXPECT_EQ(memory().wrap(std::as_bytes(std::span(little)), nullptr), nullptr);
}

TEST_F(MetalMemory, WhatDoesNotFitIsNamedAndTheDeviceLivesOn) {
  const auto before = uploaded(counted(10));
  const std::string error = error_of([&] { memory().allocate(std::int64_t{1} << 50); });
  for (const char* part : {"metal:0 (", "no memory for 1024.0 TiB", " are taken, and the largest buffer has "})
    EXPECT_NE(error.find(part), std::string::npos) << error;
  EXPECT_EQ(downloaded(before.get(), 10), counted(10));
  const auto a = memory().allocate(0), b = memory().allocate(0);
  EXPECT_NE(a.get(), b.get());
}

/// What was let go while the queue had work is free where it is needed.
TEST_F(MetalKernels, LetMemoryGoOnceTheyAreDone) {
  const KernelText text = affine_metal_kernel(3);
  const auto kernels = memory().load({&text, 1}, {});
  const auto x = uploaded(counted(100)), y = memory().allocate(400);
  for (std::int64_t given = 0; given < 6; ++given) {
    const auto most = memory().allocate(memory().largest_buffer());
    launch(*kernels, x.get(), most.get(), 1, 100);
    launch(*kernels, most.get(), y.get(), 1, 100);
  }
  EXPECT_EQ(downloaded(y.get(), 100), counted(100, 6));
}

TEST_F(MetalKernels, ComputeEachPositionOnce) {
  const std::vector<KernelText> texts{affine_metal_kernel(4)};
  const auto kernels = memory().load(texts, {});
  for (const std::size_t positions : {1u, 255u, 256u, 257u, 100003u}) {
    const auto x = uploaded(counted(positions));
    launch(*kernels, x.get(), x.get(), 1, static_cast<std::int64_t>(positions));
    launch(*kernels, x.get(), x.get(), 1, 0);
    ASSERT_EQ(downloaded(x.get(), positions), counted(positions, 4));
  }
}

TEST_F(MetalKernels, GetAsManyBuffersAsTheyHave) {
  const KernelText text = affine_metal_kernel(5);
  const auto kernels = memory().load({&text, 1}, {});
  const auto x = uploaded(counted(4));
  const std::int64_t one = 1;
  const std::vector<std::byte*> between{x.get() + 2, x.get()}, wild{x.get() + (1 << 30), x.get()};
  EXPECT_THROW(kernels->launch(0, between, {&one, 1}, 1), InternalError);
  EXPECT_THROW(kernels->launch(0, {between.data(), 1}, {&one, 1}, 1), InternalError);
  EXPECT_THROW(kernels->launch(0, wild, {&one, 1}, 1), InternalError);
  const std::vector<std::int64_t> many(600, 1);
  EXPECT_NE(error_of([&] { kernels->launch(0, between, many, 1); }).find("kernel affine_5 has 602 buffers and sizes (allowed: 511)"),
            std::string::npos);
}

TEST_F(MetalKernels, AreFoundInAnArchiveUnlessItIsDamaged) {
  const TemporaryFolder folder;
  EXPECT_EQ(load_in(folder.path()).kernels_compiled, 2);
  EXPECT_EQ(load_in(folder.path()).kernels_from_disk, 2);
  ASSERT_EQ(std::distance(fs::directory_iterator(folder.path()), {}), 1);
  const fs::path file = fs::directory_iterator(folder.path())->path();
  fs::resize_file(file, fs::file_size(file) / 2);
  EXPECT_EQ(load_in(folder.path()).kernels_compiled, 2);
  EXPECT_EQ(load_in(folder.path()).kernels_from_disk, 2);
}

TEST_F(MetalKernels, EqualTextsAreLoadedOnce) {
  const std::vector<KernelText> twice{affine_metal_kernel(20), affine_metal_kernel(21), affine_metal_kernel(20)};
  const auto kernels = memory().load(twice, {});
  EXPECT_EQ(kernels->counters.kernels_compiled, 2);
  EXPECT_EQ(kernels->counters.kernels_shared, 1);
  EXPECT_EQ(memory().load({twice.data(), 2}, {})->counters.kernels_compiled, 0);
}

TEST_F(MetalKernels, WhatTheCompilerRefusesIsNamedWithItsLog) {
  std::vector<KernelText> texts{affine_metal_kernel(30), affine_metal_kernel(31), affine_metal_kernel(32)};
  texts[1].text += "inline int wrong() { return undeclared_name; }\n";
  const std::string error = error_of([&] { memory().load(texts, {}); });
  for (const char* part : {"metal:0 (", "refuses kernel affine_31: ", "rlx dump --stage kernels --device metal:0", "undeclared_name"})
    EXPECT_NE(error.find(part), std::string::npos) << error;
}

TEST_F(MetalKernels, OfSeveralThreadsShareTheQueue) {
  const KernelText text = affine_metal_kernel(7);
  const auto kernels = memory().load({&text, 1}, {});
  std::vector<std::thread> threads;
  std::vector<int> wrong(4, 0);
  for (std::size_t t = 0; t < wrong.size(); ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        const auto first = static_cast<float>(t * 1000 + static_cast<std::size_t>(i));
        const auto x = uploaded(counted(1000, first)), y = memory().allocate(4000);
        launch(*kernels, x.get(), y.get(), 1, 1000);
        wrong[t] += downloaded(y.get(), 1000) != counted(1000, first + 7);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(4, 0));
}

class MetalGraphs : public MetalTest {};

TEST_F(MetalGraphs, AreOfANamedDevice) {
  EXPECT_EQ(Device::named("metal:0").name(), "metal:0");
  EXPECT_EQ(Device::named("metal").name(), "metal:0");
  const std::string description = Device::named("metal").description();
  for (const char* part : {"; macOS ", " of memory, buffers up to ", "computes in f32"})
    EXPECT_NE(description.find(part), std::string::npos) << description;
  EXPECT_NE(error_of([&] { backend().target({.cpu_level = "avx2"}); }).find("cpu_level 'avx2' is of the CPU"), std::string::npos);
}

TEST_F(MetalGraphs, ComputeTheFirstSampleOfEveryOp) { expect_first_samples(session()); }

TEST_F(MetalGraphs, ChangeStatesWhereTheyLie) { expect_states_change(session()); }

/// A device that loses its work says so to who waits next, and lives on.
TEST_F(MetalGraphs, OfADeviceThatFailsAreAnErrorThatNamesIt) {
  struct Failing : metal::Gpu {
    metal::Shared allocate(std::int64_t bytes) override {
      auto* const host = new std::byte[static_cast<std::size_t>(bytes)];
      return {host, host, reinterpret_cast<std::uintptr_t>(host)};
    }
    metal::Shared wrap(std::span<std::byte>) override { return {}; }
    void let_go(void* memory) override { delete[] static_cast<std::byte*>(memory); }
    metal::Pipelines compile(const std::string&, std::span<const std::string> names, const std::string&) override {
      return {std::vector<void*>(names.size()), "", ""};
    }
    void let_go_kernel(void*) override {}
    void launch(void*, std::span<const std::uint64_t>, std::span<void* const>, std::uint64_t, std::uint64_t) override { error = "lost"; }
    void copy(void*, std::int64_t, void*, std::int64_t, std::int64_t) override {}
    void clear(void*, std::int64_t, std::int64_t) override {}
    std::string finish() override { return std::exchange(error, {}); }
    std::string error;
  } gpu;
  gpu.title = "Failing GPU";
  gpu.memory = gpu.largest_buffer = 1 << 20;
  const auto failing = metal::backend_of(gpu, "metal:7");
  DeviceMemory& its = *failing->memory();
  const KernelText text = affine_metal_kernel(8);
  const auto kernels = its.load({&text, 1}, {});
  const auto x = its.allocate(4);
  const std::vector<std::byte*> buffers{x.get(), x.get()};
  const std::int64_t one = 1;
  kernels->launch(0, buffers, {&one, 1}, 1);
  EXPECT_EQ(error_of([&] { its.finish(); }), "metal:7 (Failing GPU): waiting for it: lost");
  its.finish();
}

}  // namespace gpu_metal_test
}  // namespace rlx::test
