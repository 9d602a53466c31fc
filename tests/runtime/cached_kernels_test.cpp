// A process whose kernels are all in the cache does without LLVM.
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "formats/temporary_folder.h"
#include "rlx/ops.h"
#include "rlx/session.h"

namespace rlx {
namespace {

bool maps_llvm() {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    if (line.find("rlx_llvm") != std::string::npos) return true;
  return false;
}

/// The exponential of 1 by a kernel of a session with that cache.
CompileCounters run_in(const std::filesystem::path& folder) {
  const Session session(Device::cpu(), {.threads = 1, .cache_folder = folder});
  Graph graph;
  graph.output("y", exp(graph.input("x", {1}, f32)));
  const float one = 1;
  EXPECT_NEAR(session.compile(graph).run({{"x", std::span(&one, 1)}}).at("y").get_double(0), 2.7182818, 1e-6);
  return session.counters();
}

TEST(CachedKernels, AreLoadedWithoutLlvm) {
#ifndef __x86_64__
  GTEST_SKIP() << "LLVM links what it compiled for this architecture";
#endif
  if (!std::ifstream("/proc/self/maps")) GTEST_SKIP() << "the system does not say what is mapped";
  const test::TemporaryFolder folder;
  EXPECT_EXIT(
      {
        const bool compiled = run_in(folder.path()).kernels_compiled == 1;
        std::_Exit(compiled && maps_llvm() ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
  ASSERT_FALSE(maps_llvm());
  EXPECT_EQ(run_in(folder.path()).kernels_from_disk, 1);
  EXPECT_FALSE(maps_llvm());
}

}  // namespace
}  // namespace rlx
