// Kernels of an OpenCL device: launches, what is shared, what is kept on disk, and what a driver refuses.
#include <fstream>

#include "backends/opencl_device.h"
#include "rlx/ops.h"

namespace rlx::test {
namespace {

namespace fs = std::filesystem;

class OpenClKernels : public OpenClTest {
 protected:
  /// `kernel` of `kernels` over x = 1..positions, times 3.
  std::vector<float> result_of(DeviceKernels& kernels, std::size_t kernel, std::size_t positions) const {
    std::vector<float> x(positions);
    for (std::size_t i = 0; i < positions; ++i) x[i] = static_cast<float>(i + 1);
    const auto in = uploaded(x), out = memory().allocate(static_cast<std::int64_t>(4 * positions));
    const std::vector<std::byte*> buffers{in.get(), out.get()};
    const std::vector<std::int64_t> sizes{3};
    kernels.launch(kernel, buffers, sizes, static_cast<std::int64_t>(positions));
    return downloaded(out.get(), positions);
  }
  void expect_affine(DeviceKernels& kernels, std::size_t kernel, int added, std::size_t positions) const {
    const auto seen = result_of(kernels, kernel, positions);
    for (std::size_t i = 0; i < positions; ++i) ASSERT_EQ(seen[i], static_cast<float>((i + 1) * 3) + static_cast<float>(added));
  }
  static std::vector<KernelText> three_kernels() { return {affine_kernel(100), affine_kernel(101), affine_kernel(102)}; }
  /// Loads three kernels and runs one.
  CompileCounters load_in(const fs::path& folder) const {
    const auto kernels = memory().load(three_kernels(), folder);
    expect_affine(*kernels, 1, 101, 100);
    return kernels->counters;
  }
  static fs::path only_file_in(const fs::path& folder) {
    EXPECT_EQ(std::distance(fs::directory_iterator(folder), {}), 1);
    return fs::directory_iterator(folder)->path();
  }
};

TEST_F(OpenClKernels, ComputeEachPositionOnce) {
  const std::vector<KernelText> texts{affine_kernel(1), affine_kernel(2)};
  const auto kernels = memory().load(texts, {});
  for (const std::size_t positions : {1u, 2u, 255u, 256u, 257u, 5000u, 100003u}) {
    expect_affine(*kernels, 0, 1, positions);
    expect_affine(*kernels, 1, 2, positions);
  }
}

TEST_F(OpenClKernels, BuffersBeginWhereTheirAddressesSay) {
  const KernelText text = affine_kernel(5);
  const auto kernels = memory().load({&text, 1}, {});
  const auto bytes = uploaded(std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7});
  const std::vector<std::byte*> buffers{bytes.get() + 4, bytes.get() + 20};
  kernels->launch(0, buffers, std::vector<std::int64_t>{10}, 2);
  kernels->launch(0, buffers, std::vector<std::int64_t>{10}, 0);
  EXPECT_EQ(downloaded(bytes.get(), 8), (std::vector<float>{0, 1, 2, 3, 4, 15, 25, 7}));
  const std::vector<std::byte*> between{bytes.get() + 2, bytes.get()};
  EXPECT_THROW(kernels->launch(0, between, std::vector<std::int64_t>{1}, 1), InternalError);
  EXPECT_THROW(kernels->launch(0, {buffers.data(), 1}, std::vector<std::int64_t>{1}, 1), InternalError);
  EXPECT_THROW(kernels->launch(0, buffers, {}, 1), InternalError);
}

TEST_F(OpenClKernels, EqualTextsAreLoadedOnce) {
  const std::vector<KernelText> twice{affine_kernel(20), affine_kernel(21), affine_kernel(20)};
  const auto kernels = memory().load(twice, {});
  EXPECT_EQ(kernels->counters.kernels_compiled, 2);
  EXPECT_EQ(kernels->counters.kernels_shared, 1);
  const auto again = memory().load({twice.data(), 2}, {});
  EXPECT_EQ(again->counters.kernels_compiled, 0);
  EXPECT_EQ(again->counters.kernels_shared, 2);
  expect_affine(*kernels, 2, 20, 10);
  expect_affine(*again, 1, 21, 10);
}

TEST_F(OpenClKernels, AreFoundOnDisk) {
  const TemporaryFolder folder;
  const CompileCounters first = load_in(folder.path());
  EXPECT_EQ(first.kernels_compiled, 3);
  EXPECT_EQ(first.kernels_from_disk, 0);
  EXPECT_EQ(first.cache_error, "");
  const CompileCounters second = load_in(folder.path());
  EXPECT_EQ(second.kernels_compiled, 0);
  EXPECT_EQ(second.kernels_from_disk, 3);
}

// Drivers run what they are given: a truncated binary ends the process, an altered one computes anything.
TEST_F(OpenClKernels, DamagedFilesAreBuiltAgain) {
  const TemporaryFolder folder;
  load_in(folder.path());
  const fs::path file = only_file_in(folder.path());
  const auto size = fs::file_size(file);
  const auto expect_built_again = [&](const char* damage) {
    EXPECT_EQ(load_in(folder.path()).kernels_compiled, 3) << damage;
    EXPECT_EQ(load_in(folder.path()).kernels_from_disk, 3) << damage;
  };
  for (const auto kept : {size / 2, size - 1, std::uintmax_t{16}, std::uintmax_t{0}}) {
    fs::resize_file(file, kept);
    expect_built_again("cut short");
  }
  for (const auto at : {size / 2, size - 1, std::uintmax_t{60}}) {
    std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekg(static_cast<std::streamoff>(at));
    const char byte = static_cast<char>(stream.get() ^ 0x10);
    stream.seekp(static_cast<std::streamoff>(at));
    stream.put(byte);
    stream.close();
    expect_built_again("a bit flipped");
  }
}

TEST_F(OpenClKernels, OfAnotherDriverAreNotTaken) {
  const TemporaryFolder folder;
  load_in(folder.path());
  const auto newer = first_device_with([](opencl::DeviceFacts& facts) { facts.version += ".1"; });
  EXPECT_EQ(newer->memory()->load(three_kernels(), folder.path())->counters.kernels_compiled, 3);
  EXPECT_EQ(newer->memory()->load(three_kernels(), folder.path())->counters.kernels_from_disk, 3);
  EXPECT_EQ(load_in(folder.path()).kernels_from_disk, 3) << "those of the first are still there";
}

TEST_F(OpenClKernels, AnUnusableFolderIsSaid) {
  const TemporaryFolder folder;
  write_text(folder / "file", "");
  const CompileCounters counters = load_in(folder / "file" / "below");
  EXPECT_EQ(counters.kernels_compiled, 3);
  EXPECT_NE(counters.cache_error, "");
}

/// Of nearly 5 billion, which lie nowhere.
TEST_F(OpenClKernels, CountBeyond32Bits) {
  const Dim rows = Dim::symbol("S", 1 << 20), columns = Dim::symbol("T", 1 << 20);
  Graph graph;
  const Value x = graph.input("x", {rows}, u8), z = graph.input("z", {columns}, u8);
  const Value all = reverse(iota(x, {rows * columns}, i64), {0});
  graph.output("last", slice(all, {0}, {1}, {1}) + cast(slice(x, {0}, {1}, {1}) + slice(z, {0}, {1}, {1}), i64));
  const Executable executable = session().compile(graph);
  const auto last = [&](std::int64_t s, std::int64_t t) {
    return executable.run({{"x", Array(u8, {s})}, {"z", Array(u8, {t})}}).at("last").get_int(0);
  };
  EXPECT_EQ(last(3, 4), 11);
  EXPECT_EQ(last(70000, 70000), 4899999999);
}

TEST_F(OpenClKernels, WhatTheDriverRefusesIsNamedWithItsLog) {
  std::vector<KernelText> texts{affine_kernel(30), affine_kernel(31), affine_kernel(32)};
  texts[1].text += "int wrong() { return undeclared_name; }\n";
  const std::string error = error_of([&] { memory().load(texts, {}); });
  EXPECT_TRUE(error.starts_with(backend().name() + " (")) << error;
  for (const std::string& part : std::vector<std::string>{"refuses kernel affine_31", "CL_BUILD_PROGRAM_FAILURE (-11)",
                                                          "rlx dump --stage kernels --device " + backend().name(), "undeclared_name"})
    EXPECT_NE(error.find(part), std::string::npos) << error;
  texts[1] = affine_kernel(31);
  expect_affine(*memory().load(texts, {}), 1, 31, 10);
}

}  // namespace
}  // namespace rlx::test
