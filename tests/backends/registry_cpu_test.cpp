// Every registered op on every one of its samples: the compiled program against the reference, at the level of this process.
#include <gtest/gtest.h>

#include "ops/registry_cases.h"
#include "ops/sample_operands.h"
#include "rlx/ops.h"
#include "rlx/session.h"

namespace rlx::test {
namespace {

/// Which operands are parameters: in the first sample those that are weights of many ops, in the next the others.
bool is_param(const Case& c, std::size_t operand) { return (c.number + operand) % 2 == 1; }

/// The sample as a graph with inputs and parameters x0, x1, ... and outputs y0, y1, ...; `wide` has f64 in place of every float operand.
Graph graph_of(const Case& c, bool wide) {
  Graph graph(std::string(c.op->name));
  Values operands;
  for (std::size_t i = 0; i < c.sample.operands.size(); ++i) {
    const auto& [dtype, shape] = c.sample.operands[i].type;
    const DType type = wide && is_float(dtype) ? f64 : dtype;
    const std::string name = "x" + std::to_string(i);
    operands.push_back(is_param(c, i) ? graph.param(name, shape, type) : graph.input(name, shape, type));
  }
  const Values results = apply_op(graph, *c.op, attributes(*c.op, c.sample), operands);
  for (std::size_t i = 0; i < results.size(); ++i) graph.output("y" + std::to_string(i), results[i]);
  return graph;
}

Array widened(const Array& x) {
  if (!is_float(x.dtype())) return x;
  Array result(f64, x.shape());
  for (std::int64_t i = 0; i < x.size(); ++i) result.set_double(i, x.get_double(i));
  return result;
}

/// The same numbers whatever the type: what rounding inside the reference itself amounts to. 0 when the op refuses f64.
std::vector<double> rounding_of_reference(const Case& c, const std::vector<Array>& operands, const std::vector<Array>& wanted) {
  std::vector<double> result(wanted.size(), 0);
  try {
    std::vector<Array> wide;
    for (const Array& operand : operands) wide.push_back(widened(operand));
    const auto exact = evaluate(graph_of(c, true), named(wide));
    for (std::size_t i = 0; i < wanted.size(); ++i)
      if (is_float(wanted[i].dtype())) result[i] = difference(widened(wanted[i]), widened(exact[i]));
  } catch (const Error&) {
  }
  for (double& d : result) d = std::isfinite(d) ? d : 0;
  return result;
}

/// Integers, bools and moved elements are equal. Otherwise a kernel may differ from the reference
///  - by 4 units in the last place of the element: the bound on a scalar op of the kernels (2) and on its reference (1), and a store;
///  - for ops with inner values, by 4 roundings of the largest result: the samples' sums are short, and kernels add in another order;
///  - by 4 times what the reference is away from its own value in f64: kernels keep narrow floats in f32 between stores, so they
///    round less often, and cancellation inside an op shows there;
///  - by what the sample allows;
///  - by the smallest normal number: kernels flush what is smaller.
double allowed(const Case& c, const Array& wanted, double reference_rounding, double element, double largest) {
  const double eps = epsilon(wanted.dtype());
  if (eps == 0 || c.op->kind == OpKind::structure) return 0;
  const double inner = c.op->kind == OpKind::scalar ? 0 : 4 * eps * largest + 4 * reference_rounding;
  return 4 * eps * std::abs(element) + inner + c.sample.tolerance * largest + 0x1p-126;
}

void expect_equal(const Case& c, const Array& seen, const Array& wanted, double reference_rounding) {
  ASSERT_EQ(type_of(seen).to_string(), type_of(wanted).to_string());
  const double largest = largest_magnitude(wanted);
  for (std::int64_t i = 0; i < wanted.size(); ++i) {
    const std::complex<double> a = seen.get_complex(i), b = wanted.get_complex(i);
    if (a == b || (std::isnan(a.real()) && std::isnan(b.real()))) continue;
    // What is not finite has no neighbourhood: only the same will do.
    const bool finite = std::isfinite(b.real()) && std::isfinite(b.imag());
    const double limit = finite ? allowed(c, wanted, reference_rounding, std::abs(b), largest) : 0;
    if (std::abs(a - b) <= limit) continue;
    ADD_FAILURE() << "element " << i << " of " << wanted.size() << ": " << a << ", must be " << b << " +- " << limit;
    return;
  }
}

void expect_reference(const Session& session) {
  for (const Case& c : all_cases()) {
    SCOPED_TRACE(c.name());
    try {
      const auto operands = random_operands(c.sample, 3);
      const Graph graph = graph_of(c, false);
      const auto wanted = evaluate(graph, named(operands));
      const auto rounding = rounding_of_reference(c, operands, wanted);
      std::map<std::string, Feed> fed;
      std::map<std::string, Array> params;
      for (std::size_t i = 0; i < operands.size(); ++i) {
        const std::string name = "x" + std::to_string(i);
        if (is_param(c, i)) params.emplace(name, operands[i]);
        else fed.emplace(name, operands[i]);
      }
      Executable program = session.compile(graph);
      program.set_params(params);
      const Outputs seen = program.run(fed), again = program.run(fed);
      ASSERT_EQ(seen.size(), wanted.size());
      for (std::size_t i = 0; i < wanted.size(); ++i) {
        expect_equal(c, seen[i], wanted[i], rounding[i]);
        EXPECT_EQ(difference(seen[i], again[i]), 0) << "in the second run";
      }
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
  }
  EXPECT_GT(session.counters().kernels_compiled, 200) << "most samples must be computed by generated kernels";
}

SessionOptions without_disk() {
  SessionOptions options;
  options.cache_folder = "";
  return options;
}

TEST(EveryOpOnCpu, Default) { expect_reference(Session(Device::cpu(), without_disk())); }

TEST(EveryOpOnCpu, WithoutClaims) {
  SessionOptions options = without_disk();
  options.claims = false;
  expect_reference(Session(Device::cpu(), options));
}

TEST(EveryOpOnCpu, WithoutFusion) {
  SessionOptions options = without_disk();
  options.fuse = false;
  expect_reference(Session(Device::cpu(), options));
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

}  // namespace
}  // namespace rlx::test
