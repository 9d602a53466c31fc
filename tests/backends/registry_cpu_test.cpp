// Every registered op on every one of its samples: the compiled program against the reference, at the level of this process.
#include <gtest/gtest.h>

#include "backends/registry_samples.h"

namespace rlx::test {
namespace registry_cpu_test {

SessionOptions without_disk() {
  SessionOptions options;
  options.cache_folder = "";
  return options;
}

void expect_on_cpu(const SessionOptions& options) {
  const Session session(Device::cpu(), options);
  expect_reference(session);
  EXPECT_GT(session.counters().kernels_compiled, 200) << "most samples must be computed by generated kernels";
}

TEST(EveryOpOnCpu, Default) { expect_on_cpu(without_disk()); }

TEST(EveryOpOnCpu, WithoutClaims) {
  SessionOptions options = without_disk();
  options.claims = false;
  expect_on_cpu(options);
}

TEST(EveryOpOnCpu, WithoutFusion) {
  SessionOptions options = without_disk();
  options.fuse = false;
  expect_on_cpu(options);
}

/// Far below 0, gelu is x times what 1 + erf leaves: nothing, not a unit in the last place of 1, which x would blow up.
TEST(Gelu, VanishesFarBelowZero) {
  const std::vector<double> x{-6, -10, -100, -1e4, -6e4};
  const Session session(Device::cpu(), without_disk());
  for (DType t : {f32, f64, f16, bf16}) {
    Graph graph;
    graph.output("y", gelu(graph.input("x", {static_cast<int>(x.size())}, t)));
    Array in(t, {static_cast<std::int64_t>(x.size())});
    for (std::size_t i = 0; i < x.size(); ++i) in.set_double(static_cast<std::int64_t>(i), x[i]);
    const Array y = session.compile(graph).run({{"x", in}}).at("y");
    for (std::int64_t i = 0; i < y.size(); ++i) {
      const double seen = y.get_double(i), exact = 0.5 * in.get_double(i) * std::erfc(-in.get_double(i) / std::sqrt(2.0));
      EXPECT_TRUE(std::signbit(seen)) << name(t) << " of " << in.get_double(i);
      EXPECT_NEAR(seen, exact, 1e-8) << name(t) << " of " << in.get_double(i);  // gelu(-6) is -5.9e-9
    }
  }
}

// Symbolic sizes.

struct SymbolicCase {
  std::string name;
  Value (*build)(Value x, Value other);  // x: f32[B,6], other: f32[6,5]
};

const SymbolicCase symbolic_cases[] = {
    {"pointwise", [](Value x, Value) { return tanh(x) * 2 + exp(x); }},
    {"transpose", [](Value x, Value) { return transpose(x, {1, 0}); }},
    {"reverse", [](Value x, Value) { return reverse(x, {0}); }},
    {"pad", [](Value x, Value) { return pad(x, {1, 0}, {2, 1}, {}, 7); }},
    {"slice the last row", [](Value x, Value) { return slice_axis(x, 0, x.dim(0) - 1, x.dim(0)); }},
    {"concat with itself", [](Value x, Value) { return concat({x, x * 2, reverse(x, {0})}, 0); }},
    {"reshape", [](Value x, Value) { return reshape(x, {x.dim(0) * 3, 2}); }},
    {"tile", [](Value x, Value) { return tile(x, {2, 3}); }},
    {"sum over the batch", [](Value x, Value) { return sum(x, {0}); }},
    {"mean over the batch", [](Value x, Value) { return mean(x, {0}); }},
    {"variance of all", [](Value x, Value) { return var(x, {0, 1}, 0); }},
    {"largest of rows", [](Value x, Value) { return reduce_max(x, {1}); }},
    {"softmax over the batch", [](Value x, Value) { return softmax(x, 0); }},
    {"softmax of rows", [](Value x, Value) { return softmax(x, 1); }},
    {"centred rows", [](Value x, Value) { return x - mean(x, {1}, true); }},
    {"product", [](Value x, Value w) { return matmul(x, w); }},
    {"product with itself", [](Value x, Value) { return matmul(x, transpose(x, {1, 0})); }},
    {"product over the batch", [](Value x, Value) { return matmul(transpose(x, {1, 0}), x); }},
    {"product with epilogue", [](Value x, Value w) { return relu(matmul(x, w) + 0.5) * 2; }},
    {"cumsum", [](Value x, Value) { return cumsum(x, 0); }},
    {"argmax", [](Value x, Value) { return argmax(x, 0); }},
    {"sort", [](Value x, Value) { return sort({x}, 1, 0)[0]; }},
    {"lower triangle of the square", [](Value x, Value) { return tril(matmul(x, transpose(x, {1, 0}))); }},
    {"take rows", [](Value x, Value) { return take(x, cast(clamp(x, 0, 3), i32), 0); }},
    {"positions", [](Value x, Value) { return iota(x, x.shape(), f32, 0) + x; }},
};

TEST(SymbolicBatch, OneProgramForEverySize) {
  const Session session(Device::cpu(), without_disk());
  for (const SymbolicCase& c : symbolic_cases) {
    SCOPED_TRACE(c.name);
    try {
      Graph graph;
      const Value x = graph.input("x", {Dim::symbol("B", 40), 6}, f32), other = graph.input("other", {6, 5}, f32);
      graph.output("y", c.build(x, other));
      const Executable program = session.compile(graph);
      const CompileCounters before = session.counters();
      for (std::int64_t size : {1, 7, 40}) {
        SCOPED_TRACE(size);
        std::mt19937 random(static_cast<unsigned>(size));
        const Array a = random_array({f32, {size, 6}}, -2, 2, random), b = random_array({f32, {6, 5}}, -2, 2, random);
        const Array wanted = evaluate(graph, {{"x", a}, {"other", b}})[0], seen = program.run({{"x", a}, {"other", b}}).at("y");
        // Sums of at most 240 terms, each rounded once; kernels add in another order.
        EXPECT_LE(difference(seen, wanted), is_float(wanted.dtype()) ? 16 * 0x1p-23 * (1 + largest_magnitude(wanted)) : 0);
      }
      EXPECT_EQ(session.counters().kernels_compiled, before.kernels_compiled);
      EXPECT_EQ(session.counters().kernels_shared, before.kernels_shared);
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
  }
}

}  // namespace registry_cpu_test
}  // namespace rlx::test
