// Complex numbers, 8-bit floats and packed 4-bit integers in generated kernels, against the reference.
#include <gtest/gtest.h>

#include <bit>
#include <limits>

#include "ops/sample_operands.h"
#include "rlx/ops.h"
#include "rlx/session.h"

namespace rlx::test {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();

SessionOptions without_disk() {
  SessionOptions options;
  options.cache_folder = "";
  return options;
}
/// A session that refuses graphs with a node that only the host can compute.
const Session& kernels_only() {
  static const Session session = [] {
    SessionOptions options = without_disk();
    options.allow_host = false;
    return Session(Device::cpu(), options);
  }();
  return session;
}

std::map<std::string, Feed> feeds(const std::map<std::string, Array>& inputs) { return {inputs.begin(), inputs.end()}; }

std::size_t count_of(const Executable& program, std::string_view how) {
  std::size_t count = 0;
  for (const NodeReport& node : program.explain()) count += node.how == how;
  return count;
}

Array array_of(DType t, const std::vector<double>& values) {
  Array array(t, {static_cast<std::int64_t>(values.size())});
  for (std::size_t i = 0; i < values.size(); ++i) array.set_double(static_cast<std::int64_t>(i), values[i]);
  return array;
}

Array bytes_as(DType t, std::int64_t count, const std::function<int(std::int64_t)>& byte) {
  Array array(t, {count});
  for (std::size_t i = 0; i < array.bytes().size(); ++i) array.mutable_bytes()[i] = static_cast<std::byte>(byte(static_cast<int>(i)));
  return array;
}

void expect_same_bytes(const Array& seen, const Array& wanted) {
  ASSERT_EQ(type_of(seen).to_string(), type_of(wanted).to_string());
  for (std::size_t i = 0; i < wanted.bytes().size(); ++i)
    ASSERT_EQ(static_cast<int>(seen.bytes()[i]), static_cast<int>(wanted.bytes()[i])) << "byte " << i;
}

// ---- what must not need the host -----------------------------------------------------------------------------------------------

struct Case {
  std::string name;
  std::vector<Type> inputs;
  Value (*build)(const Values& x);
  double tolerance;  // relative to the largest element of the result
};

// c64: a few roundings of f32 in each op; f8e4m3: a store rounds by up to 1/16 of the element, and the reference after every op.
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
    {"complex parts", {{c64, {5}}}, [](const Values& x) { return real(x[0]) * imag(x[0]); }, 1e-6},
    {"complex comparison", {{c64, {5}}}, [](const Values& x) { return logical_and(eq(x[0], x[0]), ne(x[0], x[0] + 1)); }, 0},
    {"complex from bool",
     {{boolean, {5}}},
     [](const Values& x) { return cast(x[0], c64) + complex(iota(x[0], {5}, f32), iota(x[0], {5}, f32)); },
     0},
    {"complex rows by index", {{c64, {5, 3}}, {i32, {2}}}, [](const Values& x) { return take(x[0], abs(x[1]), 0); }, 0},
    {"f8 sum", {{f8e4m3, {3, 5}}, {f8e4m3, {3, 5}}}, [](const Values& x) { return x[0] + x[1]; }, 0},
    {"f8 softmax", {{f8e5m2, {3, 5}}}, [](const Values& x) { return softmax(cast(x[0], f32), 1); }, 1e-6},
    {"f8 product", {{f8e4m3, {7, 16}}, {f8e4m3, {16, 5}}}, [](const Values& x) { return matmul(x[0], x[1]); }, 0.07},
    {"f8 padded by a number it rounds", {{f8e4m3, {5}}}, [](const Values& x) { return pad(x[0], {1}, {1}, {}, 0.3); }, 0},
    {"quantised product",
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

TEST(Legalize, KernelsAndTheHostExchangeStoredValues) {
  Graph graph;
  const Value x = graph.input("x0", {3, 5}, c64), f = graph.input("x1", {7}, f8e4m3), w = graph.input("x2", {Dim::symbol("N", 9)}, u4);
  graph.output("y0", cumsum(x * x, 1) + x);
  graph.output("y1", sort({f + f}, 1, 0)[0] * f);
  graph.output("y2", cast(w, i32) + 1);  // a last nibble without a neighbour, where N is odd
  const auto operands = random_operands({{{{c64, {3, 5}}}, {{f8e4m3, {7}}}, {{u4, {7}}, 0, 15}}, {}}, 2);
  const Executable program = Session(Device::cpu(), without_disk()).compile(graph);
  EXPECT_GT(count_of(program, "host"), 0u);
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

// ---- 8-bit floats --------------------------------------------------------------------------------------------------------------

Array cast_by_kernel(const Array& x, DType to) {
  Graph graph;
  graph.output("y", cast(graph.input("x", {Dim(x.size())}, x.dtype()), to));
  return kernels_only().compile(graph).run({{"x", x}}).at("y");
}
Array cast_by_reference(const Array& x, DType to) {
  Graph graph;
  graph.output("y", cast(graph.input("x", {Dim(x.size())}, x.dtype()), to));
  return evaluate(graph, {{"x", x}})[0];
}

TEST(Float8, EveryCodeIsReadAsItsNumber) {
  for (DType t : {f8e4m3, f8e5m2}) {
    const Array codes = bytes_as(t, 256, [](std::int64_t i) { return static_cast<int>(i); });
    const Array seen = cast_by_kernel(codes, f32);
    for (std::int64_t i = 0; i < 256; ++i) {
      const double wanted = codes.get_double(i);
      if (std::isnan(wanted)) EXPECT_TRUE(std::isnan(seen.get_double(i))) << i;
      else EXPECT_EQ(std::bit_cast<std::uint64_t>(seen.get_double(i)), std::bit_cast<std::uint64_t>(wanted)) << name(t) << " code " << i;
    }
  }
}

/// The numbers of the type, those half-way between two, and the nearest neighbours of both in `wide`.
std::vector<double> around_every_number(DType t, DType wide) {
  const Array codes = bytes_as(t, 256, [](std::int64_t i) { return static_cast<int>(i); });
  std::vector<double> values{inf, -inf, nan, 3e38, -3e38, 1e-37, -1e-37, 0.0, -0.0, 449, 480, 500, 61440, 65536};
  for (std::int64_t i = 0; i + 1 < 256; ++i)
    for (double v : {codes.get_double(i), (codes.get_double(i) + codes.get_double(i + 1)) / 2}) {
      if (!std::isfinite(v)) continue;
      const auto next = [&](double to) {
        return wide == f64 ? std::nextafter(v, to) : std::nextafter(static_cast<float>(v), static_cast<float>(to));
      };
      for (double near : {v, next(inf), next(-inf)}) values.push_back(near);
    }
  for (double v = 1e-6; v < 1e6; v *= 1.0007) values.push_back(v);
  return values;
}

TEST(Float8, RoundsAsTheReference) {
  for (DType t : {f8e4m3, f8e5m2})
    for (DType wide : {f32, f64, f16, bf16}) {
      SCOPED_TRACE(std::string(name(wide)) + " to " + std::string(name(t)));
      const Array x = array_of(wide, around_every_number(t, wide == f64 ? f64 : f32));
      expect_same_bytes(cast_by_kernel(x, t), cast_by_reference(x, t));
    }
}

TEST(Float8, IntegersBecomeTheNearest) {
  for (DType t : {f8e4m3, f8e5m2}) {
    Array x(i32, {200001});
    for (std::int64_t i = 0; i < x.size(); ++i) x.set_int(i, i - 100000);
    expect_same_bytes(cast_by_kernel(x, t), cast_by_reference(x, t));
  }
}

TEST(Float8, CodesCanBeReadAndMade) {
  Graph graph;
  const Value codes = graph.input("x", {256}, u8);
  graph.output("y", bitcast(neg(bitcast(codes, f8e4m3)), u8));
  const Array x = bytes_as(u8, 256, [](std::int64_t i) { return static_cast<int>(i); });
  expect_same_bytes(kernels_only().compile(graph).run({{"x", x}}).at("y"), evaluate(graph, {{"x", x}})[0]);
}

// ---- 4-bit integers ------------------------------------------------------------------------------------------------------------

TEST(FourBits, EveryPairInEveryOp) {
  using Build = Value (*)(Value, Value);
  const std::map<std::string, Build> ops{{"add", [](Value a, Value b) { return a + b; }},
                                         {"sub", [](Value a, Value b) { return a - b; }},
                                         {"mul", [](Value a, Value b) { return a * b; }},
                                         {"div", [](Value a, Value b) { return a / b; }},
                                         {"rem", [](Value a, Value b) { return rem(a, b); }},
                                         {"max", [](Value a, Value b) { return max(a, b); }},
                                         {"and", [](Value a, Value b) { return logical_and(a, b); }},
                                         {"xor", [](Value a, Value b) { return logical_xor(a, b); }},
                                         {"shl", [](Value a, Value b) { return shl(a, b); }},
                                         {"shr", [](Value a, Value b) { return shr(a, b); }},
                                         {"neg", [](Value a, Value) { return -a; }},
                                         {"abs", [](Value a, Value) { return abs(a); }},
                                         {"not", [](Value a, Value) { return logical_not(a); }},
                                         {"sign", [](Value a, Value) { return sign(a); }},
                                         {"lt", [](Value a, Value b) { return lt(a, b); }}};
  for (DType t : {i4, u4}) {
    const std::int64_t count = 511;  // odd: the last one has no neighbour in its byte
    const std::map<std::string, Array> inputs{
        {"a", bytes_as(t, count, [](std::int64_t i) { return static_cast<int>((2 * i) % 16 | ((2 * i + 1) % 16) << 4); })},
        {"b", bytes_as(t, count, [](std::int64_t i) { return static_cast<int>((2 * i / 17) % 16 | ((2 * i + 1) / 17 % 16) << 4); })}};
    for (const auto& [name, build] : ops) {
      SCOPED_TRACE(std::string(rlx::name(t)) + " " + name);
      Graph graph;
      const Value a = graph.input("a", {Dim(count)}, t), b = graph.input("b", {Dim(count)}, t);
      graph.output("b", b);
      graph.output("y", build(a, b));
      const Outputs seen = kernels_only().compile(graph).run(feeds(inputs));
      expect_same_bytes(seen.at("y"), evaluate(graph, inputs)[1]);
    }
  }
}

TEST(FourBits, CastsSaturateFloatsAndWrapIntegers) {
  const std::vector<double> numbers{-1e9, -9.5, -8.9, -8, -3.5, -0.5, 0, 0.5, 1.5, 7, 7.9, 8, 15, 15.9, 16, 17, 1e9, inf, -inf, nan};
  for (DType t : {i4, u4})
    for (DType from : {f32, f64, bf16, f8e5m2, i32, u8, i64}) {
      SCOPED_TRACE(std::string(name(from)) + " to " + std::string(name(t)));
      const Array x = array_of(from, numbers);
      expect_same_bytes(cast_by_kernel(x, t), cast_by_reference(x, t));
    }
}

// ---- complex numbers at the edges ----------------------------------------------------------------------------------------------

/// Every pair of these numbers, times the scale of the type.
Array edge_numbers(DType t) {
  const double huge = t == c64 ? 3e38 : 1e308, tiny = t == c64 ? 2e-38 : 3e-308;
  const std::vector<double> parts{0.0, 1.0, -1.0, 0.75, -2.5, 1e-3, 1.0000001, huge, -huge, tiny, 1e19, -1e-19, 88.0, -95.0, 10.0};
  Array all(t, {static_cast<std::int64_t>(parts.size() * parts.size())});
  std::int64_t i = 0;
  for (double re : parts)
    for (double im : parts) all.set_complex(i++, {re, im});
  return all;
}

void expect_near_reference(const Graph& graph, const std::map<std::string, Array>& inputs, double roundings) {
  const Array seen = kernels_only().compile(graph).run(feeds(inputs)).at("y"), wanted = evaluate(graph, inputs)[0];
  const double eps = wanted.dtype() == c64 ? 0x1p-23 : 0x1p-52, smallest = wanted.dtype() == c64 ? 0x1p-126 : 0x1p-1022;
  for (std::int64_t i = 0; i < wanted.size(); ++i) {
    const std::complex<double> a = seen.get_complex(i), b = wanted.get_complex(i);
    if (!std::isfinite(b.real()) || !std::isfinite(b.imag())) continue;
    const double size = std::hypot(b.real() / 4, b.imag() / 4);  // not infinite for two huge parts
    ASSERT_LE(std::hypot((a.real() - b.real()) / 4, (a.imag() - b.imag()) / 4), roundings * eps * size + smallest)
        << "element " << i << " of " << inputs.begin()->second.get_complex(i) << ": " << a << ", must be " << b;
  }
}

TEST(Complex, NothingOverflowsBeforeTheResult) {
  using Build = Value (*)(Value);
  const std::map<std::string, Build> ops{
      {"exp", [](Value x) { return exp(x); }},   {"log", [](Value x) { return log(x); }}, {"sqrt", [](Value x) { return sqrt(x); }},
      {"tanh", [](Value x) { return tanh(x); }}, {"neg", [](Value x) { return -x; }},
  };
  for (DType t : {c64, c128})
    for (const auto& [name, build] : ops) {
      SCOPED_TRACE(name + " of " + std::string(rlx::name(t)));
      const Array x = edge_numbers(t);
      Graph graph;
      graph.output("y", build(graph.input("x", {Dim(x.size())}, t)));
      expect_near_reference(graph, {{"x", x}}, 8);
    }
}

TEST(Complex, QuotientsOfEveryScale) {
  for (DType t : {c64, c128}) {
    const Array one = edge_numbers(t);
    const std::int64_t n = one.size();
    Array x(t, {n * n}), y(t, {n * n});
    for (std::int64_t i = 0; i < n * n; ++i) {
      x.set_complex(i, one.get_complex(i / n));
      y.set_complex(i, one.get_complex(i % n));
    }
    Graph graph;
    graph.output("y", graph.input("x0", {Dim(n * n)}, t) / graph.input("x1", {Dim(n * n)}, t));
    expect_near_reference(graph, named(std::vector{x, y}), 8);
  }
}

TEST(Complex, RootsAndLogarithmsKnowTheSideOfTheCut) {
  Array x(c64, {4});
  const std::vector<std::complex<double>> numbers{{-4, 0.0}, {-4, -0.0}, {0.0, -0.0}, {9, -0.0}};
  for (std::int64_t i = 0; i < 4; ++i) x.set_complex(i, numbers[static_cast<std::size_t>(i)]);
  Graph graph;
  const Value z = graph.input("x", {4}, c64);
  graph.output("root", sqrt(z));
  graph.output("angle", imag(log(z)));
  const Outputs seen = kernels_only().compile(graph).run({{"x", x}});
  EXPECT_EQ(seen.at("root").get_complex(0), std::complex<double>(0, 2));
  EXPECT_EQ(seen.at("root").get_complex(1), std::complex<double>(0, -2));
  EXPECT_EQ(seen.at("root").get_complex(2), std::complex<double>(0, 0));
  EXPECT_EQ(seen.at("root").get_complex(3), std::complex<double>(3, 0));
  EXPECT_NEAR(seen.at("angle").get_double(0), 3.14159265358979, 2e-7);
  EXPECT_NEAR(seen.at("angle").get_double(1), -3.14159265358979, 2e-7);
}

}  // namespace
}  // namespace rlx::test
