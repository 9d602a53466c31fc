// Graphs of complex numbers, 8-bit floats and packed 4-bit integers in generated kernels, against the reference.
#include <gtest/gtest.h>

#include "passes/kernels_only.h"
#include "rlx/ops.h"

namespace rlx::test {
namespace {

struct Case {
  std::string name;
  std::vector<Type> inputs;
  Value (*build)(const Values& x);
  double tolerance;  // relative to the largest element of the result
};

// c64: a few roundings of f32 in each op; 8-bit floats: sums in another order may be rounded to the neighbour, 1/8 away in f8e4m3, 1/4 in
// f8e5m2.
const Case cases[] = {
    {"complex product and exponential", {{c64, {3, 5}}, {c64, {3, 5}}}, [](const Values& x) { return exp(x[0] * x[1]); }, 1e-6},
    {"complex functions", {{c64, {7}}}, [](const Values& x) { return tanh(sin(x[0])) + sqrt(log(cos(x[0]))); }, 4e-6},
    {"complex quotient", {{c128, {5}}, {c128, {5}}}, [](const Values& x) { return x[0] / x[1]; }, 1e-15},
    {"complex power", {{c64, {5}}, {c64, {5}}}, [](const Values& x) { return pow(x[0], x[1]); }, 1e-6},
    {"complex moved",
     {{c64, {3, 5}}},
     [](const Values& x) { return pad(reverse(transpose(x[0], {1, 0}), {0}), {1, 0}, {0, 2}, {}, 3); },
     0},
    {"complex sum", {{c64, {3, 5}}}, [](const Values& x) { return sum(x[0], {1}); }, 1e-6},
    {"complex dot", {{c64, {3, 9}}, {c64, {9, 5}}}, [](const Values& x) { return matmul(x[0], x[1]); }, 1e-6},
    {"complex convolution", {{c64, {1, 3, 7}}, {c64, {2, 3, 3}}}, [](const Values& x) { return conv(x[0], x[1]); }, 1e-6},
    {"complex parts", {{c64, {5}}}, [](const Values& x) { return real(x[0]) * imag(x[0]); }, 1e-6},
    {"complex comparison", {{c64, {5}}}, [](const Values& x) { return logical_and(eq(x[0], x[0]), ne(x[0], x[0] + 1)); }, 0},
    {"complex from bool",
     {{boolean, {5}}},
     [](const Values& x) { return cast(x[0], c64) + complex(iota(x[0], {5}, f32), iota(x[0], {5}, f32)); },
     0},
    {"complex rows by index", {{c64, {5, 3}}, {i32, {2}}}, [](const Values& x) { return take(x[0], abs(x[1]), 0); }, 0},
    {"f8 sum", {{f8e4m3, {3, 5}}, {f8e4m3, {3, 5}}}, [](const Values& x) { return x[0] + x[1]; }, 0},
    {"f8 softmax", {{f8e5m2, {3, 5}}}, [](const Values& x) { return softmax(cast(x[0], f32), 1); }, 1e-6},
    {"f8 product", {{f8e4m3, {7, 16}}, {f8e4m3, {16, 5}}}, [](const Values& x) { return matmul(x[0], x[1]); }, 0.125},
    {"f8 convolution", {{f8e5m2, {1, 3, 7}}, {f8e5m2, {2, 3, 3}}}, [](const Values& x) { return conv(x[0], x[1]); }, 0.25},
    {"f8 padded by a number it rounds", {{f8e4m3, {5}}}, [](const Values& x) { return pad(x[0], {1}, {1}, {}, 0.3); }, 0},
    {"quantized product",
     {{f32, {7, 15}}, {i4, {15, 5}}},
     [](const Values& x) { return matmul(x[0], (cast(x[1], f32) - 3) * 0.125); },
     1e-6},
    {"4-bit arithmetic", {{i4, {3, 5}}, {i4, {3, 5}}}, [](const Values& x) { return x[0] * x[1] - x[0]; }, 0},
    {"4-bit sum", {{u4, {3, 5}}}, [](const Values& x) { return sum(x[0], {0}); }, 0},
    {"4-bit positions", {{u4, {21}}}, [](const Values& x) { return iota(x[0], {21}, u4) + pad(x[0], {0}, {0}, {}, 99); }, 0},
    {"4-bit padded by a number it lacks", {{i4, {3}}}, [](const Values& x) { return pad(x[0], {1}, {1}, {}, 99); }, 0},
    {"4-bit bits", {{i4, {3}}}, [](const Values& x) { return bitcast(logical_not(bitcast(x[0], u4)), i4); }, 0},
};

TEST(Legalize, LeavesNothingToTheHost) {
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    Graph graph;
    graph.output("y", c.build(inputs_for(graph, c.inputs)));
    Sample sample;
    for (const Type& type : c.inputs) sample.operands.push_back({type, is_unsigned_int(type.dtype) || is_bool(type.dtype) ? 0.0 : -2.0, 2});
    const auto inputs = named(random_operands(sample, 5));
    const Executable program = kernels_only().compile(graph);
    EXPECT_EQ(count_of(program, "host"), 0u);
    const Array seen = program.run(feeds(inputs)).at("y"), wanted = evaluate(graph, inputs)[0];
    EXPECT_LE(difference(seen, wanted), c.tolerance * largest_magnitude(wanted));
  }
}

TEST(Legalize, AComplexProductIsFourRealOnes) {
  Graph graph;
  const Value x = graph.input("x0", {33, 40}, c64), w = graph.param("x1", {40, 35}, c64);
  graph.output("y", matmul(x, w));
  Executable program = kernels_only().compile(graph);
  EXPECT_EQ(count_of(program, "claimed"), 4u);
  const auto operands = random_operands({{{{c64, {33, 40}}}, {{c64, {40, 35}}}}, {}}, 1);
  program.set_param("x1", operands[1]);
  const Array wanted = evaluate(graph, named(operands))[0];
  EXPECT_LE(difference(program.run({{"x0", operands[0]}}).at("y"), wanted), 40 * 0x1p-23 * largest_magnitude(wanted));
}

TEST(Legalize, SizesMayBeSymbolic) {
  Graph graph;
  const Dim batch = Dim::symbol("B", 9);
  const Value x = graph.input("x", {batch, 3}, c64), w = graph.input("w", {batch, 4}, i4), f = graph.input("f", {batch}, f8e5m2);
  graph.output("x2", x * x);
  graph.output("w2", w + w);
  graph.output("f2", f * f);
  const Executable program = kernels_only().compile(graph);
  for (std::int64_t size : {1, 4, 9}) {
    std::mt19937 random(static_cast<unsigned>(size));
    const std::map<std::string, Array> inputs{{"x", random_array({c64, {size, 3}}, -2, 2, random)},
                                              {"w", random_array({i4, {size, 4}}, -8, 7, random)},
                                              {"f", random_array({f8e5m2, {size}}, -2, 2, random)}};
    const auto wanted = evaluate(graph, inputs);
    const Outputs seen = program.run(feeds(inputs));
    EXPECT_LE(difference(seen.at("x2"), wanted[0]), 8 * 0x1p-23 * largest_magnitude(wanted[0]));
    expect_same_bytes(seen.at("w2"), wanted[1]);
    expect_same_bytes(seen.at("f2"), wanted[2]);
  }
}

TEST(Legalize, KernelsAndRoutinesExchangeStoredValues) {
  Graph graph;
  const Value x = graph.input("x0", {3, 5}, c64), f = graph.input("x1", {7}, f8e4m3), w = graph.input("x2", {Dim::symbol("N", 9)}, u4);
  graph.output("y0", cumsum(x * x, 1) + x);
  graph.output("y1", sort({f + f}, 1, 0)[0] * f);
  graph.output("y2", cast(w, i32) + 1);  // a last nibble without a neighbour, where N is odd
  const auto operands = random_operands({{{{c64, {3, 5}}}, {{f8e4m3, {7}}}, {{u4, {7}}, 0, 15}}, {}}, 2);
  const Executable program = Session(Device::cpu(), without_disk()).compile(graph);
  EXPECT_EQ(count_of(program, "host"), 0u);
  const auto wanted = evaluate(graph, named(operands));
  const Outputs seen = program.run(feeds(named(operands)));
  EXPECT_LE(difference(seen[0], wanted[0]), 1e-6 * largest_magnitude(wanted[0]));
  expect_same_bytes(seen[1], wanted[1]);
  expect_same_bytes(seen[2], wanted[2]);
}

TEST(Legalize, ConstantsKeepTheirType) {
  std::mt19937 random(3);
  for (DType t : {c64, f8e4m3, i4})
    for (std::int64_t size : {1, 5}) {
      Graph graph;
      const Value x = graph.input("x0", {size}, t);
      graph.output("y", x + graph.constant(random_array({t, {size}}, -3, 3, random)));
      const std::vector<Array> operands{random_array({t, {size}}, -3, 3, random)};
      expect_same_bytes(kernels_only().compile(graph).run({{"x0", operands[0]}}).at("y"), evaluate(graph, named(operands))[0]);
    }
}

}  // namespace
}  // namespace rlx::test
