// Kernels of a GPU stay inside of their buffers: AddressSanitizer watches their text, which the driver without a GPU compiles as C++.
#include <dlfcn.h>

#include "backends/gpu_device.h"
#include "backends/registry_samples.h"
#include "rlx/ops.h"

namespace rlx::test {
namespace {

class GpuBounds : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (!dlsym(RTLD_DEFAULT, "__asan_init")) GTEST_SKIP() << "needs AddressSanitizer";
  }
};

TEST_F(GpuBounds, WhatLeavesABufferIsCaught) {
  const KernelText text = affine_cuda_kernel(50);
  const auto kernels = memory().load({&text, 1}, {});
  const auto run = [&](std::int64_t bytes_in, std::int64_t bytes_out) {
    const auto in = memory().allocate(bytes_in), out = memory().allocate(bytes_out);
    const std::vector<std::byte*> buffers{in.get(), out.get()};
    kernels->launch(0, buffers, std::vector<std::int64_t>{1}, 11);
    memory().finish();
  };
  run(44, 44);
  EXPECT_DEATH(run(44, 40), "WRITE of size 4");
  EXPECT_DEATH(run(40, 44), "READ of size 4");
}

TEST_F(GpuBounds, KernelsOfOpsLeaveNone) {
  std::vector<Case> cases = all_cases();
  std::erase_if(cases, [](const Case& c) { return c.number != 0; });
  expect_all(session(), cases, cases.size() / 4);
}

/// Rows of 210 bytes, which are copied from bounds of 16 bytes on.
TEST_F(GpuBounds, TilesOfBlocksLeaveNone) {
  constexpr std::int64_t depth = 256, columns = 33;
  Graph graph;
  const Value x = graph.input("x", {Dim::symbol("T", 40), depth}, f32), w = graph.input("w", {columns, 210}, u8);
  graph.output("y", block_dot(x, w, "Q6_K", false));
  const Executable program = session().compile(graph);
  for (const std::int64_t rows : {3, 17})
    EXPECT_EQ(program.run({{"x", Array(f32, {rows, depth})}, {"w", Array(u8, {columns, 210})}}).size(), 1U);
}

}  // namespace
}  // namespace rlx::test
