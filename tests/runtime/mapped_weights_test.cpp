// Parameters of a mapped file: what kernels read where it lies is never copied, and of what products read only panels are.
#include <gtest/gtest.h>

#include <fstream>

#include "formats/temporary_folder.h"
#include "rlx/io.h"
#include "rlx/ops.h"
#include "rlx/session.h"

namespace rlx::test {
namespace mapped_weights_test {

/// The bytes of this process that no file backs.
std::int64_t anonymous_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (std::int64_t kib = 0; word == "RssAnon:" && status >> kib) return kib * 1024;
  ADD_FAILURE() << "no RssAnon in /proc/self/status";
  return 0;
}

constexpr std::int64_t rows = 8192, width = 1024, bytes = rows * width * 4;  // 32 MiB, more than all else that runs here

/// What binding the parameter "w" of a graph from a file, and two runs, add to the process.
std::int64_t growth(const Graph& graph, const std::map<std::string, Feed>& inputs) {
  const TemporaryFolder folder;
  save_safetensors(folder / "w.safetensors", {{"w", Array(f32, {rows, width})}});
  Executable program = Session(Device::cpu(), {.threads = 1, .cache_folder = ""}).compile(graph);
  const std::int64_t before = anonymous_bytes();
  program.set_params(load_safetensors(folder / "w.safetensors").arrays);
  for (int run = 0; run < 2; ++run) program.run(inputs);
  return anonymous_bytes() - before;
}

TEST(MappedWeights, ATableIsReadWhereItLies) {
  Graph graph;
  graph.output("y", embedding(graph.param("w", {rows, width}, f32), graph.input("ids", {Dim::symbol("S", 8192)}, i32)));
  EXPECT_LT(growth(graph, {{"ids", std::vector<std::int32_t>{1, 8000, 77}}}), bytes / 8);
}

TEST(MappedWeights, SoIsWhatAKernelReadsWhole) {
  Graph graph;
  graph.output("y", sum(graph.param("w", {rows, width}, f32) * graph.input("x", {width}, f32), {1}));
  EXPECT_LT(growth(graph, {{"x", std::vector<float>(width, 1)}}), bytes / 8);
}

TEST(MappedWeights, AProductKeepsOneCopyInPanels) {
  Graph graph;
  graph.output("y", linear(graph.input("x", {4, width}, f32), graph.param("w", {rows, width}, f32)));
  const std::int64_t added = growth(graph, {{"x", std::vector<float>(4 * width, 1)}});
  EXPECT_GT(added, bytes / 2);
  EXPECT_LT(added, bytes + bytes / 4);
}

}  // namespace mapped_weights_test
}  // namespace rlx::test
