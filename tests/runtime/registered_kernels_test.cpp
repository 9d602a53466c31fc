// Functions of the program that compute ops by their names.
#include <cmath>

#include "message.h"
#include "rlx/graph_cache.h"
#include "rlx/host_call.h"
#include "rlx/ops.h"
#include "rlx/session.h"
#include "rlx/text.h"
#include "rlx/transform.h"

namespace rlx::test {
namespace {

/// Counts its calls, and takes itself back.
class Registered {
 public:
  Registered(std::string op, std::string device, const HostKernel& kernel) : op_(std::move(op)), device_(std::move(device)) {
    register_kernel(op_, device_, [=, this](std::span<const Array> operands, const std::map<std::string_view, Attr>& attributes) {
      ++calls;
      return kernel(operands, attributes);
    });
  }
  Registered(const Registered&) = delete;
  Registered& operator=(const Registered&) = delete;
  ~Registered() { register_kernel(op_, device_, nullptr); }

  int calls = 0;

 private:
  std::string op_, device_;
};

using Attributes = std::map<std::string_view, Attr>;

/// Seven times an operand: what no body computes.
std::vector<Array> sevenfold(std::span<const Array> operands, const Attributes& /*attributes*/) {
  Array result(operands[0].dtype(), operands[0].shape());
  for (std::int64_t i = 0; i < result.size(); ++i) result.set_double(i, 7 * operands[0].get_double(i));
  return {result};
}

const Function doubled = custom_op("doubled", [](const Values& x) { return Values{x[0] * 2}; });
const std::vector<float> three{1, 2, 3};

double first_of(const Graph& graph) { return Session(Device::cpu()).compile(graph).run({{"x", three}})[0].get_double(0); }

TEST(RegisteredKernels, ComputeOpsOfOnesOwn) {
  Graph graph;
  graph.output("y", doubled({graph.input("x", {Dim::symbol("N", 8)}, f32)})[0]);
  EXPECT_EQ(first_of(graph), 2) << "by its body";
  {
    const Registered kernel("doubled", "cpu", sevenfold);
    EXPECT_EQ(first_of(graph), 7);
    EXPECT_EQ(first_of(parse_graph(to_text(graph), "text")), 7) << "the text form keeps the name";
    EXPECT_EQ(kernel.calls, 2);
  }
  EXPECT_EQ(first_of(graph), 2) << "it was taken back";
}

TEST(RegisteredKernels, ComputeOpsOfRlxWithTheirAttributes) {
  Graph graph;
  graph.output("y", softmax(graph.input("x", {3, 1}, f32), 0));
  const Registered kernel("softmax", "cpu", [](std::span<const Array> operands, const Attributes& attributes) {
    EXPECT_EQ(std::get<std::int64_t>(attributes.at("axis")), 0);
    return sevenfold(operands, attributes);
  });
  EXPECT_EQ(first_of(graph), 7);
}

/// Derivatives and batches are those of the body: a kernel knows neither.
TEST(RegisteredKernels, AreOfOneExampleForwards) {
  const Registered kernel("doubled", "cpu", sevenfold);
  Graph graph;
  const Value x = graph.input("x", {3}, f32);
  graph.output("slope", grad(sum(doubled({x})[0], {0}), {x})[0]);
  graph.output("batch", vmap(doubled, {x}, {0})[0]);
  const Outputs y = Session(Device::cpu()).compile(graph).run({{"x", three}});
  EXPECT_EQ(y.at("slope").get_double(0), 2);
  EXPECT_EQ(y.at("batch").get_double(1), 4);
}

TEST(RegisteredKernels, ReachIntoLoops) {
  const Registered kernel("doubled", "cpu", sevenfold);
  Graph graph;
  const Value x = graph.input("x", {3}, f32);
  graph.output("y", fori_loop(3, [](Value, const Values& carry) { return doubled(carry); }, {x})[0]);
  EXPECT_EQ(first_of(graph), 343);
}

TEST(RegisteredKernels, AreOfADeviceOrOfItsKind) {
  Graph graph;
  graph.output("y", doubled({graph.input("x", {3}, f32)})[0]);
  const Registered other("doubled", "coreml", sevenfold), longer("doubled", "cpu:1", sevenfold);
  EXPECT_EQ(first_of(graph), 2);
}

TEST(RegisteredKernels, CountForGraphsThatACacheKnew) {
  GraphCache cache{Session(Device::cpu())};
  Graph graph;
  graph.output("y", doubled({graph.input("x", {3}, f32)})[0]);
  const auto first = [&] { return cache.compile(graph).run({{"x", three}})[0].get_double(0); };
  EXPECT_EQ(first(), 2);
  {
    const Registered kernel("doubled", "cpu", sevenfold);
    EXPECT_EQ(first(), 7);
  }
  EXPECT_EQ(first(), 2);
}

TEST(RegisteredKernels, AreCheckedWhereTheyAnswer) {
  Graph graph;
  graph.output("y", doubled({graph.input("x", {3}, f32)})[0]);
  const Registered kernel("doubled", "cpu", [](std::span<const Array>, const Attributes&) { return std::vector<Array>{Array(i32, {3})}; });
  EXPECT_NE(error_of([&] { first_of(graph); }).find("result 0 is i32[3] (allowed: f32[3])"), std::string::npos);
  EXPECT_EQ(error_of([] { register_kernel("scan", "cpu", sevenfold); }),
            "rlx.register_kernel: scan has parts that are graphs (allowed: other ops of `rlx ops`, and those of custom_op)");
  EXPECT_EQ(error_of([] { register_kernel("", "cpu", sevenfold); }),
            "rlx.register_kernel: an op without a name (allowed: those of `rlx ops` and of custom_op)");
}

}  // namespace
}  // namespace rlx::test
