// What cannot be a package of CoreML is refused with a reason, and leaves nothing.
#include <cmath>

#include "formats/file_size_limit.h"
#include "formats/temporary_folder.h"
#include "rlx/export.h"
#include "rlx/host_call.h"
#include "rlx/ops.h"

namespace rlx::test {
namespace {

class CoreMlErrors : public testing::Test {
 protected:
  std::string refused(const Graph& graph, const CoreMlOptions& options = {}) const {
    const std::string message = error_of([&] { export_coreml(folder_ / "m.mlpackage", {graph, {}}, options); });
    EXPECT_FALSE(std::filesystem::exists(folder_ / "m.mlpackage"));
    return message;
  }
  TemporaryFolder folder_;
};

TEST_F(CoreMlErrors, Types) {
  Graph graph;
  graph.output("y", graph.input("x", {3}, f64) + 1);
  EXPECT_EQ(refused(graph),
            "coreml: input 'x' is f64[3]: CoreML computes no f64 (allowed: f32, f16, bf16, bool, and integers of up to 32 bits)");
}

TEST_F(CoreMlErrors, Ops) {
  Graph graph;
  graph.output("y", bitcast(graph.input("x", {3}, f32), i32));
  EXPECT_EQ(refused(graph), "coreml: bitcast with a result of i32[3] cannot be exported: CoreML has no view of a number's bits");
}

TEST_F(CoreMlErrors, Shapes) {
  Graph axes;
  axes.output("y", -axes.input("x", {1, 2, 1, 2, 1, 2}, f32));
  EXPECT_EQ(refused(axes), "coreml: input 'x' is f32[1,2,1,2,1,2]: CoreML has at most 5 axes");
  Graph empty;
  empty.output("y", -empty.input("x", {0, 2}, f32));
  EXPECT_EQ(refused(empty), "coreml: input 'x' is f32[0,2], which has no elements: CoreML has no such arrays");
}

TEST_F(CoreMlErrors, Sizes) {
  Graph graph;
  graph.output("y", -graph.input("x", {Dim::symbol("B", 8)}, f32));
  EXPECT_EQ(refused(graph, {.sizes = {{"B", 9}}}), "coreml: size 9 of 'B' (allowed: 1..8)");
  EXPECT_EQ(refused(graph, {.sizes = {{"B", 1}, {"C", 1}}}), "coreml: the graph has no symbol 'C' to give the size 1");
}

TEST_F(CoreMlErrors, OpenSizes) {
  Graph graph;
  const Dim b = Dim::symbol("B", 8), s = Dim::symbol("S", 9);
  graph.output("y", -graph.input("x", {b, s}, f32));
  EXPECT_EQ(refused(graph, {.choices = {{"B", {1, 2}}}}),
            "coreml: 'S' is open, and 'B' has choices (allowed: choices for both, or a size for S)");
  EXPECT_EQ(refused(graph, {.choices = {{"B", {1, 2}}, {"S", {3}}}}),
            "coreml: 2 choices of 'B' and 1 of 'S' (allowed: as many, as they belong together)");
  EXPECT_EQ(refused(graph, {.choices = {{"B", {1, 9}}, {"S", {1, 2}}}}), "coreml: size 9 of 'B' (allowed: 1..8)");
  EXPECT_EQ(refused(graph, {.choices = {{"B", {}}}}), "coreml: 0 choices of 'B' (allowed: 1..128)");
  EXPECT_EQ(refused(graph, {.sizes = {{"B", 1}}, .choices = {{"B", {1}}}}), "coreml: 'B' has a size and choices (allowed: one of them)");
  EXPECT_EQ(refused(graph, {.choices = {{"C", {1}}}}), "coreml: the graph has no symbol 'C' to give the size 1");

  Graph two;
  two.output("y", two.input("x", {b}, f32) + two.input("z", {b}, f32));
  EXPECT_EQ(refused(two, {.choices = {{"B", {1, 2}}}, .minimum_target = 17}),
            "coreml: choices for several inputs ask for iOS 18 (the target is iOS 17)");
  Graph endless;
  endless.output("y", -endless.input("x", {Dim::symbol("B", std::int64_t{1} << 40)}, f32));
  EXPECT_EQ(refused(endless), "coreml: the bound of 'B' is 1099511627776 (allowed: below 2^31; or give B a size)");
  Graph apart;
  apart.output("y", apart.input("x", {b * 2, 1}, f32) + iota(apart.input("z", {1}, f32), {b * 2, 3}, f32));
  EXPECT_EQ(
      refused(apart),
      "coreml: iota with a result of f32[2*B,3] cannot be exported: no input has an axis of the size B alone (give its symbols sizes)");
  Graph state;
  state.output("s", state.state("s", {b}, f32) + 1);
  EXPECT_EQ(refused(state), "coreml: state 's' is f32[B]: states have fixed shapes (give its symbols sizes)");
}

TEST_F(CoreMlErrors, UnsignedNumbers) {
  Graph graph;
  graph.output("y", graph.input("x", {3}, u32) / 3);
  EXPECT_EQ(refused(graph), "coreml: div with a result of u32[3] cannot be exported: CoreML has no u32, which i32 cannot stand for there");
}

TEST_F(CoreMlErrors, Parameters) {
  Graph graph;
  graph.output("y", graph.input("x", {2}, f32) * graph.param("w", {2}, f32));
  EXPECT_EQ(refused(graph), "coreml: parameter 'w' has no value");
  const std::string wrong = error_of([&] { export_coreml(folder_ / "m.mlpackage", {graph, {{"w", Array(f32, {3})}}}); });
  EXPECT_EQ(wrong, "coreml: parameter 'w' is f32[2], its value f32[3]");
}

TEST_F(CoreMlErrors, Numbers) {
  Graph graph;
  graph.output("y", linear(graph.input("x", {2, 32}, f32), graph.param("w", {3, 32}, f32)));
  Array weight(f32, {3, 32});
  weight.set_double(5, 1e6);
  const auto message = [&](Precision precision) {
    return error_of([&] { export_coreml(folder_ / "m.mlpackage", {graph, {{"w", weight}}}, {.precision = precision}); });
  };
  EXPECT_EQ(message(Precision::f16),
            "coreml: 'w': 1 of 96 elements are beyond f16 (allowed: -65504 to 65504; precision f32 has a wider range)");
  weight.set_double(7, NAN);
  EXPECT_EQ(message(Precision::f32), "coreml: 'w': 1 of 96 elements are NaN (mend the weights)");
  EXPECT_EQ(message(Precision::bf16), "coreml: products in bf16 (allowed: f32, f16, int8)");
  EXPECT_EQ(error_of([&] { export_coreml(folder_ / "m.mlpackage", {graph, {{"w", weight}}}, {.calibration = Calibration()}); }),
            "coreml: a calibration beside products in f32 (allowed: int8)");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "m.mlpackage"));
}

TEST_F(CoreMlErrors, Targets) {
  Graph graph;
  graph.output("s", graph.state("s", {2}, f32) + 1);
  EXPECT_EQ(refused(graph, {.minimum_target = 17}), "coreml: states ask for iOS 18 (the target is iOS 17)");
  EXPECT_EQ(refused(graph, {.minimum_target = 19}), "coreml: a target of iOS 19 (allowed: 16, 17, 18, 26)");
  Graph integers;
  integers.output("s", integers.state("s", {2}, i32) + 1);
  EXPECT_EQ(refused(integers), "coreml: state 's' is i32[2] (allowed: floats, which are f16 there)");
}

TEST_F(CoreMlErrors, Functions) {
  Graph graph;
  graph.output("y", -graph.input("x", {Dim::symbol("B", 8)}, f32));
  EXPECT_EQ(refused(graph, {.functions = {{"a", {{"B", 1}}}, {"a", {{"B", 2}}}}}), "coreml: function 'a' (allowed: names that differ)");
  EXPECT_EQ(refused(graph, {.functions = {{"a", {{"B", 9}}}}}), "coreml: size 9 of 'B' (allowed: 1..8)");
  EXPECT_EQ(refused(graph, {.functions = {{"a", {{"B", 1}}}}, .minimum_target = 16}),
            "coreml: several functions ask for iOS 18 (the target is iOS 16)");
}

TEST_F(CoreMlErrors, FunctionsOfTheHost) {
  Graph graph;
  Value x = graph.input("x", {3}, f32);
  graph.output("y", host_call([](std::span<const Array> operands) { return std::vector<Array>{operands[0]}; }, {x}, {x.type()})[0]);
  EXPECT_EQ(refused(graph), "coreml: host_call with a result of f32[3] cannot be exported: it calls a function of the host");
}

TEST_F(CoreMlErrors, Folders) {
  Graph graph;
  graph.output("y", linear(graph.input("x", {2, 64}, f32), graph.param("w", {64, 64}, f32)));
  const SavedGraph saved{graph, {{"w", Array(f32, {64, 64})}}};
  const auto message = [&](const std::filesystem::path& out) { return error_of([&] { export_coreml(out, saved); }); };
  std::filesystem::create_directory(folder_ / "there");
  EXPECT_EQ(message(folder_ / "there"), (folder_ / "there").string() + ": exists already (a package is written to a new folder)");
  write_text(folder_ / "file", "x");
  const std::string below_file = message(folder_ / "file" / "m.mlpackage");
  EXPECT_TRUE(below_file.starts_with((folder_ / "file").string() + ": the folder cannot be made: ")) << below_file;
  constexpr rlim_t small_disk = 1 << 12;
  const FileSizeLimit disk(small_disk);
  const std::filesystem::path full = folder_ / "full.mlpackage";
  EXPECT_EQ(message(full), (full / "Data/com.apple.CoreML/weights/weight.bin").string() + ": cannot write: File too large");
  EXPECT_FALSE(std::filesystem::exists(full));
}

}  // namespace
}  // namespace rlx::test
