// What stays from run to run is packed by a launch of its own.
#include <gtest/gtest.h>

#include <algorithm>

#include "backends/cpu/backend.h"
#include "lowering/lowering.h"
#include "lowering/program_file/parts.h"
#include "lowering/program_file/program_parts.h"
#include "message.h"
#include "rlx/ops.h"
#include "runtime/executable.h"

namespace rlx {
namespace {

Program lowered(const Graph& graph) { return lower_graph(graph, {}, cpu::backend().target({})).program; }

const Launch* packing_in(const Program& program) {
  const auto found = std::ranges::find_if(program.launches, [](const Launch& launch) { return launch.packed.has_value(); });
  return found == program.launches.end() ? nullptr : &*found;
}

/// y = x tanh(w), with a parameter w.
Graph product() {
  Graph graph;
  graph.output("y", matmul(graph.input("x", {Dim::symbol("B", 64), 64}, f32), tanh(graph.param("w", {64, 96}, f32))));
  return graph;
}

TEST(Packing, RunsOnceRightBehindWhatItPacksAndIsAllThatAProductReadsOfIt) {
  const Program program = lowered(product());
  ASSERT_EQ(program.launches.size(), 3u);
  const Launch &tanh = program.launches[0], &packing = program.launches[1], &product = program.launches[2];
  EXPECT_EQ(packing.reads, tanh.writes);
  EXPECT_EQ(program.type(packing.writes.at(0)), *packing.packed);
  EXPECT_EQ(product.reads.at(0), packing.writes[0]);
  EXPECT_EQ(std::ranges::count(product.reads, tanh.writes[0]), 0);
  EXPECT_EQ(prepared_launches(program), (std::vector<bool>{true, true, false}));
}

TEST(Packing, IsOnlyOfWhatStays) {
  Graph graph;
  graph.output("y", matmul(graph.input("x", {8, 64}, f32), graph.input("w", {64, 96}, f32)));
  graph.output("z", matmul(graph.param("u", {64, 64}, f32), graph.param("v", {64, 96}, f32)));
  EXPECT_FALSE(packing_in(lowered(graph))) << "z is computed once from them as they are";
}

/// Whether what it reads stays shows in a run.
TEST(Packing, OfARegionLeavesItsReadersTheOperandToo) {
  Graph graph;
  const Value x = graph.input("x", {4, 8, 64}, f32), w = graph.param("w", {64, 64}, f32);
  const auto step = [&](const Values& carry, const Values& slice) { return std::pair{Values{carry[0] + matmul(slice[0], w)}, Values{}}; };
  graph.output("y", scan(step, {sum(x, {0}) * 0}, {x})[0]);
  const Program program = lowered(graph);
  ASSERT_EQ(program.regions.size(), 1u);
  const Program& inner = *program.regions.begin()->second;
  const Launch* const packing = packing_in(inner);
  ASSERT_TRUE(packing);
  const auto reads = [](const Launch& launch, ValueId value) { return std::ranges::count(launch.reads, value) > 0; };
  EXPECT_TRUE(std::ranges::any_of(
      inner.launches, [&](const Launch& launch) { return reads(launch, packing->writes[0]) && reads(launch, packing->reads[0]); }));
}

/// What is wrong with the program when it is read from a file in which its packing is another.
std::string refusal(const std::function<void(Launch&)>& alter) {
  Program program = lowered(product());
  alter(program.launches.at(1));
  Blobs blobs;
  ProgramWriter writer(blobs);
  write_program(writer, program);
  ProgramReader reader("a.rlxp", std::as_bytes(std::span(writer.bytes())), 0, {});
  return test::error_of([&] {
    const Program read = read_program(reader);
    SizeTable sizes(read.symbols);
    const auto code = cpu::backend().host_code(cpu::backend().target({}), {}, 1);
    code->steps(read, sizes, [](ValueId) { return 0; }, std::vector<bool>(read.launches.size()));
  });
}

TEST(Packing, OfAProgramFileHasTheMemoryThatItNeeds) {
  EXPECT_EQ(refusal([](Launch&) {}), "no error");
  EXPECT_NE(refusal([](Launch& packing) { packing.packed = Type{u8, {64}}; }).find("packed weights are u8[64] (allowed: u8["),
            std::string::npos);
  EXPECT_NE(refusal([](Launch& packing) { packing.packed = Type{u8, {Dim::symbol("B", 64)}}; }).find("a size that is known"),
            std::string::npos);
  EXPECT_NE(refusal([](Launch& packing) { packing.writes.clear(); }).find("0 from 1 values (allowed: one from one)"), std::string::npos);
  EXPECT_NE(refusal([](Launch& packing) { packing.writes[0].result = 0; }).find("a value that nothing else writes"), std::string::npos);
}

}  // namespace
}  // namespace rlx
