// Compiled kernels on disk: used by the next session, and compiled again when they are damaged.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "formats/temporary_folder.h"
#include "rlx/ops.h"
#include "rlx/session.h"

namespace rlx::test {
namespace {

namespace fs = std::filesystem;

/// Two kernels: a row sum, and what is computed from it.
Graph two_kernels() {
  Graph graph;
  const Value x = graph.input("x", {4, 8}, f32);
  graph.output("sum", sum(x, {1}));
  graph.output("shift", tanh(x) + 1);
  return graph;
}

Session session_in(const fs::path& folder) {
  SessionOptions options;
  options.cache_folder = folder;
  return Session(Device::cpu(), options);
}

void expect_right(const Executable& program) {
  const std::vector<float> x(32, 0.5f);
  const Outputs y = program.run({{"x", x}});
  EXPECT_FLOAT_EQ(y.at("sum").values<float>()[3], 4);
  EXPECT_FLOAT_EQ(y.at("shift").values<float>()[31], std::tanh(0.5f) + 1);
}

std::vector<fs::path> files_in(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

/// Compiles and runs in `folder`; how many kernels came from LLVM and from disk.
CompileCounters compile_in(const fs::path& folder) {
  const Session session = session_in(folder);
  expect_right(session.compile(two_kernels()));
  return session.counters();
}

/// Kernels that LLVM compiles after each file in a filled folder went through `damage`.
std::int64_t recompiled_after(const std::function<void(const fs::path&)>& damage) {
  const TemporaryFolder folder;
  compile_in(folder.path());
  for (const fs::path& file : files_in(folder.path())) damage(file);
  const std::int64_t compiled = compile_in(folder.path()).kernels_compiled;
  EXPECT_EQ(compile_in(folder.path()).kernels_compiled, 0) << "the damaged files must have been replaced";
  return compiled;
}

TEST(Cache, SecondSessionCompilesNothing) {
  const TemporaryFolder folder;
  const CompileCounters first = compile_in(folder.path());
  EXPECT_EQ(first.kernels_compiled, 2);
  EXPECT_EQ(first.kernels_from_disk, 0);
  EXPECT_EQ(files_in(folder.path()).size(), 2u);
  const CompileCounters second = compile_in(folder.path());
  EXPECT_EQ(second.kernels_compiled, 0);
  EXPECT_EQ(second.kernels_from_disk, 2);
}

TEST(Cache, EqualKernelsOfOneSessionAreShared) {
  const Session session = session_in({});
  session.compile(two_kernels());
  session.compile(two_kernels());
  EXPECT_EQ(session.counters().kernels_compiled, 2);
  EXPECT_EQ(session.counters().kernels_shared, 2);
}

TEST(Cache, DamagedFilesAreCompiledAgain) {
  EXPECT_EQ(recompiled_after([](const fs::path& file) {
              std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
              stream.seekg(-20, std::ios::end);
              const int byte = stream.get();
              stream.seekp(-20, std::ios::end);
              stream.put(static_cast<char>(byte ^ 1));
            }),
            2);
}

TEST(Cache, ShortFilesAreCompiledAgain) {
  for (std::uintmax_t keep : {0, 1, 39, 40, 41, 200})
    EXPECT_EQ(recompiled_after([&](const fs::path& file) { fs::resize_file(file, std::min(keep, fs::file_size(file) - 1)); }), 2) << keep;
}

TEST(Cache, ForeignFilesAreCompiledAgain) {
  EXPECT_EQ(recompiled_after([](const fs::path& file) { std::ofstream(file, std::ios::binary) << std::string(5000, 'x'); }), 2);
}

TEST(Cache, AnotherKernelUnderTheNameIsCompiledAgain) {
  const TemporaryFolder folder;
  compile_in(folder.path());
  const auto files = files_in(folder.path());
  ASSERT_EQ(files.size(), 2u);
  fs::copy_file(files[0], files[1], fs::copy_options::overwrite_existing);
  EXPECT_EQ(compile_in(folder.path()).kernels_compiled, 1);
}

TEST(Cache, AFolderThatCannotBeMadeIsReportedOnceAndDoneWithout) {
  const TemporaryFolder folder;
  std::ofstream(folder.path() / "file") << "no folder";
  testing::internal::CaptureStderr();
  const CompileCounters counters = compile_in(folder.path() / "file" / "cache");
  const std::string warning = testing::internal::GetCapturedStderr();
  EXPECT_EQ(counters.kernels_compiled, 2);
  EXPECT_EQ(warning.find("rlx: compiled kernels are not kept: "), 0u) << warning;
  EXPECT_EQ(std::count(warning.begin(), warning.end(), '\n'), 1) << warning;
}

}  // namespace
}  // namespace rlx::test
