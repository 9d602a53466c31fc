// `dump --stage lir`: a program as text.
#include <gtest/gtest.h>

#include <regex>

#include "rlx/ops.h"
#include "rlx/session.h"

namespace rlx {
namespace {

std::string text_of(const Graph& graph, SessionOptions options = {}) {
  const std::string text = Session(Device::cpu(), options).compile(graph).dump(Stage::lir);
  return std::regex_replace(text, std::regex("k[0-9a-f]{8,}"), "K");
}

TEST(ProgramText, NamesSlotsAndWhatEachLaunchDoesWithThem) {
  Graph graph;
  const Value x = graph.input("x", {Dim::symbol("B", 8), 4}, f32);
  graph.output("z", cast(log(exp(x)), f16));
  EXPECT_EQ(text_of(graph, {.fuse = false}),
            "arena: 128 bytes at the bounds of the symbols\n"
            "symbol B: at most 8\n"
            "slot 0: f32[B,4] in 16*B bytes at input 'x'\n"
            "slot 1: f16[B,4] in 8*B bytes at output 'z'\n"
            "slot 2: f32[B,4] in 16*B bytes at arena+0\n"
            "slot 3: f32[B,4] in 16*B bytes at arena+0, in place of slot 2\n"
            "K\n"
            "  reads  slot 0 at input 'x': %0: f32[B,4]\n"
            "  writes slot 2 at arena+0: %1: f32[B,4]\n"
            "  kernel K over 4*B, buffers 0 2\n"
            "K\n"
            "  reads  slot 2 at arena+0: %1: f32[B,4]\n"
            "  writes slot 3 at arena+0: %2: f32[B,4]\n"
            "  kernel K over 4*B, buffers 2 3\n"
            "K\n"
            "  reads  slot 3 at arena+0: %2: f32[B,4]\n"
            "  writes slot 1 at output 'z': %3: f16[B,4]\n"
            "  kernel K over 4*B, buffers 3 1\n");
}

TEST(ProgramText, AStateThatChangesWhereItLiesIsReadAndWritten) {
  Graph graph;
  const Value cache = graph.state("cache", {8, 3}, f32), row = graph.input("row", {1, 3}, f32), at = graph.input("at", {}, i32);
  const Value zero = scalar(at, 0, i32), twice = row * 2;  // compilers differ in which of two arguments comes first
  graph.output("cache", dynamic_update(cache, twice, {at, zero}));
  const std::string text = text_of(graph);
  EXPECT_NE(
      text.find("state_update\n  both   slot 0 at input 'cache': %0: f32[8,3], %7: f32[8,3]\n  reads  slot 5 at arena+0: %6: f32[1,3]\n"),
      std::string::npos)
      << text;
}

TEST(ProgramText, AKernelOfAClaimHasATileAmongItsBuffers) {
  Graph graph;
  const Value x = graph.input("x", {64, 64}, f32), w = graph.param("w", {64, 64}, f32);
  graph.output("y", exp(matmul(x, w)));
  const std::string text = text_of(graph);
  EXPECT_NE(text.find("  writes slot 3 at output 'y': %3: f32[64,64]\n  kernel K over a tile, buffers tile 3\n"), std::string::npos)
      << text;
}

TEST(ProgramText, WeightsArePackedOnce) {
  Graph graph;
  const Value x = graph.input("x", {64, 64}, f32), w = graph.param("w", {64, 64}, f32);
  graph.output("y", matmul(x, w));
  const std::string text = text_of(graph);
  EXPECT_NE(text.find("pack once\n  reads  slot 1 at input 'w': %1: f32[64,64]\n  writes slot 2 at prepared: %2 packed: u8["),
            std::string::npos)
      << text;
}

}  // namespace
}  // namespace rlx
