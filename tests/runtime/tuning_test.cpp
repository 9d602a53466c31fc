// Choices about products that are made by time: once for each size, kept on disk, and without a trace in the results.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>

#include "formats/temporary_folder.h"
#include "rlx/ops.h"
#include "rlx/session.h"

namespace rlx::test {
namespace {

namespace fs = std::filesystem;

Array random_values(std::vector<std::int64_t> shape, unsigned seed) {
  Array array(f32, std::move(shape));
  std::mt19937 bits(seed);
  for (float& value : array.mutable_values<float>()) value = std::uniform_real_distribution<float>(-1, 1)(bits);
  return array;
}

/// Two products, the second with an epilogue that adds to a value where it lies.
Graph two_products() {
  Graph graph("two products");
  const Value x = graph.input("x", {Dim::symbol("B", 64), 48}, f32);
  const Value h = gelu(matmul(x, graph.param("a", {48, 96}, f32)));
  graph.output("y", tanh(x) + matmul(h, graph.param("b", {96, 48}, f32)));
  return graph;
}

SessionOptions tuning_in(const fs::path& folder, bool tune = true) {
  SessionOptions options;
  options.threads = 2;
  options.tune = tune;
  options.cache_folder = folder;
  return options;
}

Executable compiled(const Session& session) {
  Executable program = session.compile(two_products());
  program.set_params({{"a", random_values({48, 96}, 1)}, {"b", random_values({96, 48}, 2)}});
  return program;
}

Array result(const Executable& program, std::int64_t rows) { return program.run({{"x", random_values({rows, 48}, 3)}}).at("y"); }

/// Runs in `folder`, and says what was timed and what was found on disk.
CompileCounters tuned_in(const fs::path& folder) {
  const Session session(Device::cpu(), tuning_in(folder));
  EXPECT_EQ(result(compiled(session), 20), result(compiled(Session(Device::cpu(), tuning_in(folder, false))), 20));
  return session.counters();
}

TEST(Tuning, EachSizeIsTimedOnceAndThenReadFromDisk) {
  const TemporaryFolder folder;
  const Session session(Device::cpu(), tuning_in(folder.path()));
  const Executable program = compiled(session);
  const Array first = result(program, 20);
  EXPECT_EQ(session.counters().products_timed, 2);
  EXPECT_EQ(result(program, 20), first);
  EXPECT_EQ(session.counters().products_timed, 2);
  result(program, 21);
  EXPECT_EQ(session.counters().products_timed, 4);
  EXPECT_EQ(session.counters().products_from_disk, 0);
  const CompileCounters later = tuned_in(folder.path());
  EXPECT_EQ(later.products_timed, 0);
  EXPECT_EQ(later.products_from_disk, 2);
}

TEST(Tuning, OtherThreadsAreAnotherMachine) {
  const TemporaryFolder folder;
  tuned_in(folder.path());
  SessionOptions options = tuning_in(folder.path());
  options.threads = 1;
  const Session session(Device::cpu(), options);
  result(compiled(session), 20);
  EXPECT_EQ(session.counters().products_timed, 2);
}

/// Products that are timed again after each file of choices went through `damage`.
std::int64_t timed_after(const std::function<void(const fs::path&)>& damage) {
  const TemporaryFolder folder;
  tuned_in(folder.path());
  for (const auto& entry : fs::directory_iterator(folder / "tuned")) damage(entry.path());
  const std::int64_t timed = tuned_in(folder.path()).products_timed;
  EXPECT_EQ(tuned_in(folder.path()).products_timed, 0) << "the damaged files must have been replaced";
  return timed;
}

TEST(Tuning, DamagedShortAndForeignFilesAreTimedAgain) {
  EXPECT_EQ(timed_after([](const fs::path& file) {
              std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
              stream.seekp(-3, std::ios::end);
              stream.put('\x7f');
            }),
            2);
  for (const std::uintmax_t keep : {0, 1, 40, 79})
    EXPECT_EQ(timed_after([&](const fs::path& file) { fs::resize_file(file, std::min(keep, fs::file_size(file) - 1)); }), 2) << keep;
  EXPECT_EQ(timed_after([](const fs::path& file) { std::ofstream(file, std::ios::binary) << std::string(5000, 'x'); }), 2);
}

TEST(Tuning, AFolderThatCannotBeMadeIsReportedAndDoneWithout) {
  const TemporaryFolder folder;
  write_text(folder / "file", "no folder");
  const Session session(Device::cpu(), tuning_in(folder / "file"));
  result(compiled(session), 20);
  EXPECT_EQ(session.counters().products_timed, 2);
  EXPECT_NE(session.counters().cache_error, "");
}

TEST(Tuning, ReportsSayWhatWasChosen) {
  const Session session(Device::cpu(), tuning_in({})), usual(Device::cpu(), tuning_in({}, false));
  const std::map<std::string, Feed> inputs{{"x", random_values({20, 48}, 3)}};
  for (const LaunchReport& launch : compiled(session).profile(inputs, 1))
    EXPECT_EQ(launch.blocks.empty(), launch.kind != "claim") << launch.name;
  for (const LaunchReport& launch : compiled(usual).profile(inputs, 1)) EXPECT_EQ(launch.blocks, "") << launch.name;
}

}  // namespace
}  // namespace rlx::test
