// What cannot be a package of CoreML is refused with a reason, and leaves nothing.
#include <cmath>

#include "formats/temporary_folder.h"
#include "rlx/export.h"
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
            "coreml: input 'x' is f64[3]: CoreML computes no f64 (allowed: f32, f16, bf16, i32, bool, and integers below 32 bits)");
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
  EXPECT_EQ(refused(graph), "coreml: the size of 'B' is open: a package has fixed shapes (give B a size, 1..8)");
  EXPECT_EQ(refused(graph, {.sizes = {{"B", 9}}}), "coreml: size 9 of 'B' (allowed: 1..8)");
  EXPECT_EQ(refused(graph, {.sizes = {{"B", 1}, {"C", 1}}}), "coreml: the graph has no symbol 'C' to give the size 1");
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
  EXPECT_EQ(message(Precision::bf16), "coreml: products in bf16 (allowed: f32, f16)");
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

TEST_F(CoreMlErrors, Folders) {
  Graph graph;
  graph.output("y", -graph.input("x", {2}, f32));
  std::filesystem::create_directory(folder_ / "there");
  EXPECT_EQ(error_of([&] { export_coreml(folder_ / "there", {graph, {}}); }),
            (folder_ / "there").string() + ": exists already (a package is written to a new folder)");
  write_text(folder_ / "file", "x");
  EXPECT_NE(error_of([&] { export_coreml(folder_ / "file" / "m.mlpackage", {graph, {}}); }), "");
}

}  // namespace
}  // namespace rlx::test
