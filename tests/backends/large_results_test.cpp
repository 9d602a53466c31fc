// Results larger than the last cache are stored past the caches, where that is right, and with the same bits.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <map>

#include "backends/cpu/backend.h"
#include "backends/cpu/compiler.h"
#include "lowering/large_results.h"
#include "lowering/lowering.h"
#include "passes/expand.h"
#include "rlx/ops.h"
#include "rlx/session.h"

namespace rlx::test {
namespace {

using Layer = std::function<Value(const Value& x)>;

const std::map<std::string, Layer>& layers() {
  static const std::map<std::string, Layer> all{
      {"gelu", [](const Value& x) { return gelu(x); }},
      {"softmax", [](const Value& x) { return softmax(x); }},
      {"centred", [](const Value& x) { return x - mean(x, {-1}, true); }},
  };
  return all;
}

Graph graph_of(const Layer& layer, std::int64_t rows, std::int64_t columns) {
  Graph graph;
  graph.output("y", layer(graph.input("x", {rows, columns}, f32)));
  return graph;
}

/// Rows of so many f32 that make a result which is just large.
std::int64_t rows_of_large(std::int64_t columns) { return cpu::target_of().caps.past_caches_bytes / (4 * columns) + 1; }

KernelText text_of(const Graph& graph) {
  Program program = lower(expand(graph, [](const Graph&, const Node&) { return false; }), cpu::target_of());
  const auto kernels = program.kernels();
  EXPECT_EQ(kernels.size(), 1u);
  return kernels[0]->text;
}

/// The object file that LLVM makes of a kernel for `level`.
std::string machine_code(const KernelText& text, cpu::CpuLevel level) { return cpu::open_compiler(level)->compile(text); }

/// How often the bytes are part of the code; a '?' stands for any one.
std::size_t count(const std::string& code, std::string_view bytes) {
  const auto alike = [](char seen, char wanted) { return wanted == '?' || seen == wanted; };
  std::size_t found = 0;
  for (auto at = code.begin();; ++at, ++found) {
    at = std::search(at, code.end(), bytes.begin(), bytes.end(), alike);
    if (at == code.end()) return found;
  }
}

constexpr std::string_view fence = "\x0f\xae\xf8";  // SFENCE

/// How often vectors of the level's width are stored by MOVNTPS, as Intel's manual encodes it.
std::size_t stores_past(const std::string& code, cpu::CpuLevel level) {
  if (level == cpu::CpuLevel::portable) return count(code, "\x0f\x2b");
  if (level == cpu::CpuLevel::avx2) return count(code, "\xc5\xfc\x2b") + count(code, "\xc5\x7c\x2b") + count(code, "\xc4?\x7c\x2b");
  return count(code, "\x62?\x7c\x48\x2b");
}

class LargeResults : public testing::TestWithParam<std::string> {
 protected:
  const Layer& layer() const { return layers().at(GetParam()); }
};

INSTANTIATE_TEST_SUITE_P(Of, LargeResults, testing::Values("gelu", "softmax", "centred"), [](const auto& suite) { return suite.param; });

#ifdef __x86_64__
TEST_P(LargeResults, GoPastTheCachesAtEveryLevel) {
  const KernelText text = text_of(graph_of(layer(), rows_of_large(512), 512));
  for (const cpu::CpuLevel level : cpu::allowed_levels(cpu::cpu_features())) {
    if (level == cpu::CpuLevel::portable && GetParam() == "gelu") continue;  // no vectors: each multiply-add is a call
    const std::string code = machine_code(text, level);
    EXPECT_GE(stores_past(code, level), 1u) << cpu::to_string(level);
    EXPECT_EQ(count(code, fence), 1u) << cpu::to_string(level);
  }
}

TEST_P(LargeResults, SmallOnesDoNot) {
  const Graph graph = graph_of(layer(), rows_of_large(512) - 2, 512);
  EXPECT_EQ(count(machine_code(text_of(graph), cpu::cpu_level()), fence), 0u);
}

TEST(LargeResult, RowsThatEndWithinALineDoNotGoPastTheCaches) {
  const Graph graph = graph_of(layers().at("softmax"), rows_of_large(500), 500);
  EXPECT_EQ(count(machine_code(text_of(graph), cpu::cpu_level()), fence), 0u);
}

TEST(LargeResult, OfASizeThatTheRunTellsDoesNotGoPastTheCaches) {
  Graph graph;
  graph.output("y", softmax(graph.input("x", {Dim::symbol("B", rows_of_large(512)), 512}, f32)));
  EXPECT_EQ(count(machine_code(text_of(graph), cpu::cpu_level()), fence), 0u);
}
#endif

/// The kernel of a large result over inputs of its own.
struct LargeRun {
  explicit LargeRun(const Layer& layer) : rows(rows_of_large(512)), x(f32, {rows, 512}) {
    const KernelText text = text_of(graph_of(layer, rows, 512));
    function = jit->load(std::span(&text, 1), {})[0];
    for (std::int64_t i = 0; i < x.size(); ++i)
      x.mutable_values<float>()[static_cast<std::size_t>(i)] = static_cast<float>(i % 977) / 97 - 5;
  }
  void operator()(const float* from, float* to, std::int64_t begin, std::int64_t end) const {
    std::array<void*, 2> buffers{const_cast<float*>(from), to};
    function(buffers.data(), nullptr, begin, end);
  }

  std::int64_t rows;
  Array x;
  std::unique_ptr<HostCode> jit = cpu::backend().host_code(cpu::target_of(), {.cache_folder = ""}, 1);
  KernelFunction function = nullptr;
};

// A result that begins within a line, one that takes its operand's place, and parts that begin anywhere are stored as small ones are.
TEST_P(LargeResults, HaveTheBitsOfThoseStoredAsUsual) {
  const LargeRun run(layer());
  const std::int64_t size = run.x.size(), steps = GetParam() == "gelu" ? size : run.rows;
  const auto x = run.x.values<float>();
  Array past(f32, {size}), shifted(f32, {size + 1}), taken(f32, {size}), parts(f32, {size});
  float* const within_a_line = shifted.mutable_values<float>().data() + 1;
  std::ranges::copy(x, taken.mutable_values<float>().begin());
  run(x.data(), past.mutable_values<float>().data(), 0, steps);
  run(x.data(), within_a_line, 0, steps);
  run(taken.values<float>().data(), taken.mutable_values<float>().data(), 0, steps);
  for (std::int64_t begin = 0; begin < steps; begin += steps / 3 + 1)
    run(x.data(), parts.mutable_values<float>().data(), begin, std::min(steps, begin + steps / 3 + 1));
  const std::size_t bytes = past.bytes().size();
  EXPECT_EQ(std::memcmp(past.bytes().data(), within_a_line, bytes), 0);
  EXPECT_EQ(std::memcmp(past.bytes().data(), taken.bytes().data(), bytes), 0);
  EXPECT_EQ(std::memcmp(past.bytes().data(), parts.bytes().data(), bytes), 0);
}

}  // namespace
}  // namespace rlx::test
