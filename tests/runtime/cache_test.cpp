// Compiled kernels on disk: used by the next session, and compiled again when they are damaged.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "backends/cpu/backend.h"
#include "formats/file_size_limit.h"
#include "formats/temporary_folder.h"
#include "lowering/lowering.h"
#include "lowering/object_cache.h"
#include "passes/expand.h"
#include "rlx/ops.h"
#include "rlx/session.h"

namespace rlx::test {
namespace {

namespace fs = std::filesystem;

/// Two kernels: sums of columns, and what is computed for each element.
Graph two_kernels() {
  Graph graph;
  const Value x = graph.input("x", {4, 8}, f32);
  graph.output("sum", sum(x, {0}));
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
  EXPECT_FLOAT_EQ(y.at("sum").values<float>()[3], 2);
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

TEST(Cache, TheOldestObjectsMakeRoom) {
  const TemporaryFolder folder;
  ObjectCache cache(folder.path(), 10000);
  const std::string object(1500, 'o');
  std::string reason;
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(cache.store(fmt::format("key {}", i), object, reason)) << reason;
    for (const fs::path& file : files_in(folder.path()))  // as if each store were an hour after the one before
      fs::last_write_time(file, fs::last_write_time(file) - std::chrono::hours(1));
    std::uintmax_t bytes = 0;
    for (const fs::path& file : files_in(folder.path())) bytes += fs::file_size(file);
    EXPECT_LE(bytes, 10000u);
    EXPECT_TRUE(cache.find(fmt::format("key {}", i), reason).has_value()) << "what was just stored stays";
  }
  EXPECT_FALSE(cache.find("key 0", reason).has_value());
  write_text(folder / "notes.txt", std::string(20000, 'n'));
  cache.store("key 20", object, reason);
  EXPECT_TRUE(fs::exists(folder / "notes.txt")) << "a file that is not the cache's own";
}

TEST(Cache, ARelativeXdgFolderDoesNotCount) {
  ASSERT_EQ(unsetenv("RLX_CACHE"), 0);
  ASSERT_EQ(setenv("HOME", "/home/someone", 1), 0);
  ASSERT_EQ(setenv("XDG_CACHE_HOME", "relative", 1), 0);
  EXPECT_EQ(default_cache_folder(), fs::path("/home/someone/.cache/rlx"));
  ASSERT_EQ(setenv("XDG_CACHE_HOME", "/absolute", 1), 0);
  EXPECT_EQ(default_cache_folder(), fs::path("/absolute/rlx"));
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

/// It costs time only, and the library prints nothing: the counters say why.
TEST(Cache, AFolderThatCannotBeMadeIsReportedInTheCountersAndDoneWithout) {
  const TemporaryFolder folder;
  std::ofstream(folder.path() / "file") << "no folder";
  testing::internal::CaptureStderr();
  const CompileCounters counters = compile_in(folder.path() / "file" / "cache");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(counters.kernels_compiled, 2);
  EXPECT_NE(counters.cache_error.find((folder.path() / "file").string()), std::string::npos) << counters.cache_error;
  EXPECT_EQ(compile_in({}).cache_error, "");
}

TEST(Cache, AFullDiskIsReportedAndLeavesNoPieces) {
  const TemporaryFolder folder;
  const auto counters = [&] {
    const test::FileSizeLimit full(64);
    return compile_in(folder.path());
  }();
  EXPECT_EQ(counters.kernels_compiled, 2);
  EXPECT_NE(counters.cache_error.find(folder.path().string()), std::string::npos) << counters.cache_error;
  EXPECT_EQ(files_in(folder.path()), std::vector<fs::path>());
  EXPECT_EQ(compile_in(folder.path()).cache_error, "");
}

/// Files of others: root, who may do everything, is nobody while it lives.
class AsNobody {
 public:
  AsNobody() {
    if (user_ == 0) is_nobody_ = seteuid(65534) == 0;
  }
  ~AsNobody() { EXPECT_TRUE(!is_nobody_ || seteuid(user_) == 0); }
  AsNobody(const AsNobody&) = delete;
  AsNobody& operator=(const AsNobody&) = delete;

 private:
  uid_t user_ = geteuid();
  bool is_nobody_ = false;
};

TEST(Cache, AFolderThatMayOnlyBeReadStillServes) {
  const TemporaryFolder folder;
  compile_in(folder.path());
  fs::permissions(folder.path(), fs::perms(0555));
  for (const fs::path& file : files_in(folder.path())) fs::permissions(file, fs::perms(0444));
  CompileCounters served, unwritten;
  {
    const AsNobody nobody;
    served = compile_in(folder.path());
    const Session session = session_in(folder.path());
    Graph other;
    other.output("y", exp(other.input("x", {3}, f32)));
    session.compile(other);
    unwritten = session.counters();
  }
  fs::permissions(folder.path(), fs::perms::owner_all);
  EXPECT_EQ(served.kernels_from_disk, 2);
  EXPECT_EQ(served.cache_error, "");
  EXPECT_EQ(unwritten.kernels_compiled, 1);
  EXPECT_NE(unwritten.cache_error, "");
  EXPECT_EQ(files_in(folder.path()).size(), 2u);
}

TEST(Cache, IsMadeForItsUserAlone) {
  const TemporaryFolder folder;
  compile_in(folder / "a/b");
  EXPECT_EQ(fs::status(folder / "a/b").permissions(), fs::perms::owner_all);
  for (const fs::path& file : files_in(folder / "a/b"))
    EXPECT_EQ(fs::status(file).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST(Cache, AFolderThatOthersMayWriteToIsNotUsed) {
  const TemporaryFolder folder;
  compile_in(folder.path());
  for (const fs::perms others : {fs::perms::group_write, fs::perms::others_write}) {
    fs::permissions(folder.path(), fs::perms::owner_all | others);
    const CompileCounters counters = compile_in(folder.path());
    EXPECT_EQ(counters.kernels_from_disk, 0);
    EXPECT_EQ(counters.kernels_compiled, 2);
    EXPECT_EQ(counters.cache_error,
              folder.path().string() + ": others may write to it, and what is there is run (chmod go-w makes it ours)");
  }
  fs::permissions(folder.path(), fs::perms::owner_all);
  EXPECT_EQ(compile_in(folder.path()).kernels_from_disk, 2);
}

TEST(Cache, FilesThatOthersMayWriteToAreCompiledAgain) {
  EXPECT_EQ(recompiled_after([](const fs::path& file) { fs::permissions(file, fs::perms::group_write, fs::perm_options::add); }), 2);
}

TEST(Cache, FilesThatAreLinksAreCompiledAgain) {
  const TemporaryFolder elsewhere;
  EXPECT_EQ(recompiled_after([&](const fs::path& file) {
              fs::rename(file, elsewhere / file.filename().string());
              fs::create_symlink(elsewhere / file.filename().string(), file);
            }),
            2);
}

TEST(Cache, FilesOfAnotherUserAreNotRun) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, who gives files away";
  const TemporaryFolder folder;
  compile_in(folder.path());
  const fs::path theirs = files_in(folder.path())[0];
  ASSERT_EQ(chown(theirs.c_str(), 65534, 65534), 0);
  fs::permissions(folder.path(), fs::perms::all | fs::perms::sticky_bit);
  const CompileCounters counters = compile_in(folder.path());
  EXPECT_EQ(counters.kernels_from_disk, 1);
  EXPECT_EQ(counters.kernels_compiled, 1);
  EXPECT_EQ(counters.cache_error, theirs.string() + ": belongs to another user, whose code is not run");

  ASSERT_EQ(chown(folder.path().c_str(), 65534, 65534), 0);
  const CompileCounters none = compile_in(folder.path());
  EXPECT_EQ(none.kernels_compiled, 2);
  EXPECT_EQ(none.cache_error, folder.path().string() + ": belongs to another user, whose code is not run");
}

TEST(Cache, FilesOfAnotherUserThatCannotBeReadAreDoneWithout) {
  const TemporaryFolder folder;
  compile_in(folder.path());
  fs::permissions(folder.path(), fs::perms(0555));
  for (const fs::path& file : files_in(folder.path())) fs::permissions(file, fs::perms::none);
  CompileCounters counters;
  {
    const AsNobody nobody;
    counters = compile_in(folder.path());
  }
  fs::permissions(folder.path(), fs::perms::owner_all);
  EXPECT_EQ(counters.kernels_compiled, 2);
  EXPECT_NE(counters.cache_error, "");
}

TEST(Cache, KernelsOfAnotherProcessorAreNotTaken) {
  if (cpu::cpu_level() == cpu::CpuLevel::portable) GTEST_SKIP() << "this CPU has one level only";
  const TemporaryFolder folder;
  compile_in(folder.path());
  Graph graph = two_kernels();
  Program program = lower(expand(graph, [](const Graph&, const Node&) { return false; }), cpu::target_of());
  std::vector<KernelText> texts;
  for (const GeneratedKernel* kernel : program.kernels()) texts.push_back(kernel->text);
  for (const auto& [level, compiled] : {std::pair(cpu::cpu_level(), 0), std::pair(cpu::CpuLevel::portable, 2)}) {
    const auto jit = cpu::backend().host_code(cpu::target_of(level), {.cache_folder = folder.path()}, 1);
    jit->load(texts, {});
    EXPECT_EQ(jit->counters().kernels_compiled, compiled);
    EXPECT_EQ(jit->counters().kernels_from_disk, 2 - compiled);
  }
}

}  // namespace
}  // namespace rlx::test
