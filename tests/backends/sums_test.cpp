// How exact sums are: beside the errors of NumPy and PyTorch over the same numbers (bench/sums_peers.py --record), beside sums in f64, and
// bit by bit at any number of threads and place.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <sstream>

#include "backends/cpu/machine/cpu_features.h"
#include "fixture.h"
#include "ir/reference.h"
#include "ops/values.h"
#include "rlx/ops.h"
#include "rlx/session.h"
#include "rlx/transform.h"

namespace rlx::test {
namespace sums_test {

using Sizes = std::vector<std::int64_t>;
using Build = std::function<Value(const Values&)>;

/// As in bench/sums.cpp.
double bits(std::uint32_t i) {
  i = (i ^ (i >> 16)) * 0x85ebca6bU;
  i = (i ^ (i >> 13)) * 0xc2b2ae35U;
  return (i ^ (i >> 16)) >> 8;
}
double number(std::uint32_t i) { return (bits(i) + bits(~i) / 0x1p24) / 0x1p24; }

Array numbers(DType dtype, const Sizes& shape, double low = 0, double high = 1) {
  Array x(dtype, shape);
  for (std::int64_t i = 0; i < x.size(); ++i) x.set_double(i, low + (high - low) * number(static_cast<std::uint32_t>(i)));
  return x;
}

Array run(const Session& session, const std::vector<Array>& inputs, const Build& build) {
  Graph graph;
  Values x;
  std::map<std::string, Feed> feeds;
  for (const Array& input : inputs) {
    const std::string name = fmt::format("x{}", x.size());
    x.push_back(graph.input(name, type_of(input).shape, input.dtype()));
    feeds.emplace(name, input);
  }
  graph.output("y", build(x));
  return session.compile(graph).run(feeds).at("y");
}
Array run(const std::vector<Array>& inputs, const Build& build) {
  static const Session session(Device::cpu(), {.threads = 2, .cache_folder = ""});
  return run(session, inputs, build);
}

// -- beside peers

struct PeerCase {
  std::string op, type;
  Sizes axes, shape;
  double least = std::numeric_limits<double>::infinity();  // the smaller of the peers' largest relative errors
};

Sizes integers(const std::string& text, char between) {
  Sizes all;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, between);) all.push_back(std::stoll(word));
  return all;
}

std::vector<PeerCase> recorded() {
  std::vector<PeerCase> all;
  std::ifstream file(fixture("sums/peers.txt"));
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string axes, shape, peer;
    PeerCase& c = all.emplace_back();
    words >> c.op >> c.type >> axes >> shape;
    c.axes = integers(axes, ','), c.shape = integers(shape, 'x');
    for (double error = 0; words >> peer >> error;) c.least = std::min(c.least, error);
  }
  return all;
}

Value built(const PeerCase& c, const Value& x) {
  if (c.op == "mean") return mean(x, c.axes);
  if (c.op == "var") return var(x, c.axes, 0);
  return sum(c.op == "squares" ? x * x : x, c.axes);
}

/// By plain loops over long double.
std::vector<long double> exact(const PeerCase& c, const Array& x, std::int64_t results) {
  std::vector<long double> sums(static_cast<std::size_t>(results), 0), squares = sums;
  const auto terms = static_cast<long double>(x.size() / results);
  for (std::int64_t i = 0; i < x.size(); ++i) {
    std::int64_t to = 0, stride = 1, rest = i;
    for (std::size_t axis = c.shape.size(); axis-- > 0; rest /= c.shape[axis])
      if (std::ranges::find(c.axes, static_cast<std::int64_t>(axis)) == c.axes.end()) {
        to += rest % c.shape[axis] * stride;
        stride *= c.shape[axis];
      }
    const long double v = x.get_double(i);
    sums[static_cast<std::size_t>(to)] += v;
    squares[static_cast<std::size_t>(to)] += v * v;
  }
  for (std::size_t i = 0; i < sums.size(); ++i) {
    if (c.op == "squares") sums[i] = squares[i];
    if (c.op == "mean") sums[i] /= terms;
    if (c.op == "var") sums[i] = (squares[i] - sums[i] * sums[i] / terms) / terms;
  }
  return sums;
}

TEST(Sums, AreAsCloseAsThoseOfPeers) {
  const std::map<std::string, DType> types{{"f32", f32}, {"f64", f64}, {"bf16", bf16}};
  const std::vector<PeerCase> cases = recorded();
  ASSERT_GT(cases.size(), 80u);
  for (const PeerCase& c : cases) {
    const DType type = types.at(c.type);
    const Array x = numbers(type, c.shape);
    const Array y = run({x}, [&](const Values& in) { return built(c, in[0]); });
    const std::vector<long double> wanted = exact(c, x, y.size());
    double largest = 0;
    for (std::int64_t i = 0; i < y.size(); ++i) {
      const long double want = wanted[static_cast<std::size_t>(i)];
      largest = std::max(largest, static_cast<double>(std::abs((y.get_double(i) - want) / want)));
    }
    const double half = type == f32 ? 0x1p-24 : type == bf16 ? 0x1p-8 : 0x1p-53;  // what rounding the result itself may cost
    std::string name = c.op + " " + c.type + " over";
    for (std::int64_t axis : c.axes) name += fmt::format(" {}", axis);
    // Vectors of accumulators are added up after each run, which rounds a few times: few runs do not yet average that out.
    const bool many = x.size() / y.size() >= 2000;
    EXPECT_LE(largest, std::max(c.least, (many ? 1.2 : 4) * half)) << name << " of " << type_of(x).to_string();
  }
}

// -- beside f64

struct Composite {
  std::string name;
  std::vector<Sizes> shapes;
  Build build;
  double low = 0, high = 1;
};

Value gradient(const Value& loss, const Value& by) { return grad(loss, {by})[0]; }
Value total(const Value& x) { return sum_all(x); }

const std::vector<Composite>& composites() {
  static const std::vector<Composite> all{
      {"every other element", {{40, 7000}}, [](const Values& x) { return sum(slice(x[0], {0, 1}, {40, 7000}, {1, 2}), {0, 1}); }},
      {"transposed", {{7000, 40}}, [](const Values& x) { return sum(transpose(x[0], {1, 0}), {1}); }},
      {"reversed", {{30000, 5}}, [](const Values& x) { return sum(reverse(x[0], {0}), {0}, true); }},
      {"three results", {{90000, 3}}, [](const Values& x) { return sum(x[0], {0}); }},
      {"inside other work", {{300, 3000}}, [](const Values& x) { return exp(x[0]) / sum(exp(x[0]), {0, 1}, true) * 1e6; }},
      {"variance of rows", {{9, 20000}}, [](const Values& x) { return var(x[0], {1}); }, 3, 4},
      {"variance of columns", {{20000, 9}}, [](const Values& x) { return var(x[0], {0}); }, 3, 4},
      {"statistics of a batch norm", {{40, 6, 30, 30}}, [](const Values& x) { return var(x[0], {0, 2, 3}) + mean(x[0], {0, 2, 3}); }, 3, 4},
      {"the same with channels last",
       {{40, 30, 30, 6}},
       [](const Values& x) { return var(x[0], {0, 1, 2}) + mean(x[0], {0, 1, 2}); },
       3,
       4},
      {"norm", {{100, 1000}}, [](const Values& x) { return norm(x[0], {0, 1}); }},
      {"logsumexp", {{4, 40000}}, [](const Values& x) { return logsumexp(x[0], {1}); }},
      {"logsumexp of columns", {{40000, 12}}, [](const Values& x) { return logsumexp(x[0], {0}); }},
      {"cross-entropy", {{20000, 50}}, [](const Values& x) { return cross_entropy(x[0], softmax(x[0] * 3)); }},
      {"layer norm", {{3, 30000}}, [](const Values& x) { return layer_norm(x[0]); }, -1, 1},
      {"dot of vectors", {{100000}, {100000}}, [](const Values& x) { return dot(x[0], x[1], {0}, {0}); }},
      {"dot of one column", {{30000, 20}, {30000, 1}}, [](const Values& x) { return matmul(transpose(x[0], {1, 0}), x[1]); }},
      {"dot of a row", {{1, 30000}, {30000, 20}}, [](const Values& x) { return matmul(x[0], x[1]); }},
      {"gradient of a broadcast", {{30000, 20}, {20}}, [](const Values& x) { return gradient(total(exp(x[0] * x[1])), x[1]); }},
      {"gradient of a broadcast to columns",
       {{20, 30000}, {20, 1}},
       [](const Values& x) { return gradient(total(exp(x[0] * x[1])), x[1]); }},
      {"gradient of a layer norm",
       {{20000, 24}, {24}},
       [](const Values& x) { return gradient(total(exp(layer_norm(x[0], x[1]))), x[1]); },
       -1,
       1},
      {"running sum", {{30000, 3}}, [](const Values& x) { return cumsum(x[0], 0); }},
      {"running sum of a row", {{30000}}, [](const Values& x) { return cumsum(x[0], 0, false, true); }},
  };
  return all;
}

TEST(Sums, OfCompositesAndGradientsAreThoseOfWiderNumbers) {
  for (const Composite& c : composites()) {
    std::vector<Array> narrow, wide;
    for (const Sizes& shape : c.shapes) {
      narrow.push_back(numbers(f32, shape, c.low, c.high));
      wide.push_back(Array(f64, shape));
      for (std::int64_t i = 0; i < narrow.back().size(); ++i) wide.back().set_double(i, narrow.back().get_double(i));
    }
    const Array y = run(narrow, c.build);
    const Doubles wanted = rlx::test::run(wide, c.build);
    double largest = 0;
    for (std::size_t i = 0; i < wanted.size(); ++i)
      largest = std::max(largest, std::abs(y.get_double(static_cast<std::int64_t>(i)) - wanted[i]) / std::max(0.1, std::abs(wanted[i])));
    EXPECT_LE(largest, 6 * 0x1p-24) << c.name;  // a few operations follow or precede the sum
  }
}

TEST(Sums, OfTermsThatLieApartAreAsCloseAsThoseOfNeighbours) {
  for (const auto& [shape, axis] : std::vector<std::pair<Sizes, std::int64_t>>{{{50, 1000, 7}, 1},
                                                                               {{50, 20, 7}, 1},
                                                                               {{1000, 2}, 0},
                                                                               {{1000, 5}, 0},
                                                                               {{16, 300}, 0},
                                                                               {{15, 300}, 0},
                                                                               {{300, 15}, 1},
                                                                               {{300, 9}, 1}}) {
    const Array x = numbers(f32, shape);
    const PeerCase c{"sum", "f32", {axis}, shape};
    const Array y = run({x}, [&](const Values& in) { return sum(in[0], {axis}); });
    const std::vector<long double> wanted = exact(c, x, y.size());
    for (std::int64_t i = 0; i < y.size(); ++i) {
      const long double want = wanted[static_cast<std::size_t>(i)];
      EXPECT_LE(std::abs((y.get_double(i) - want) / want), 3.5L * 0x1p-24L)
          << type_of(x).to_string() << " over " << axis << ", result " << i;
    }
  }
}

// -- bits

TEST(Sums, HaveTheSameBitsAtAnyNumberOfThreads) {
  const Session one(Device::cpu(), {.threads = 1, .cache_folder = ""}), three(Device::cpu(), {.threads = 3, .cache_folder = ""});
  for (const auto& [axes, shape] : std::vector<std::pair<Sizes, Sizes>>{{{0, 1}, {3000, 101}},
                                                                        {{0}, {3000, 333}},
                                                                        {{1}, {333, 3000}},
                                                                        {{0}, {200000}},
                                                                        {{0, 2}, {300, 37, 41}},
                                                                        {{1}, {9, 900, 37}},
                                                                        {{0}, {1 << 20}},
                                                                        {{0, 1}, {640, 1000}},
                                                                        {{0}, {1 << 18, 3}}}) {
    const std::vector<Array> x{numbers(f32, shape)};
    const Build build = [&](const Values& in) { return sum(in[0] * in[0], axes); };
    const Array a = run(one, x, build), b = run(three, x, build);
    EXPECT_TRUE(std::ranges::equal(a.bytes(), b.bytes())) << type_of(x[0]).to_string();
  }
}

/// All rows, or columns, of a batch are alike.
Array repeated(std::int64_t length, std::int64_t batch, bool columns) {
  Array x(f32, columns ? Sizes{length, batch} : Sizes{batch, length});
  for (std::int64_t i = 0; i < x.size(); ++i) x.set_double(i, 0.1 + number(static_cast<std::uint32_t>(columns ? i / batch : i % length)));
  return x;
}

TEST(Sums, HaveTheSameBitsAtAnyPlaceOfABatch) {
  const std::map<std::string, std::function<Value(const Value&, std::int64_t)>> ops{
      {"sum", [](const Value& x, std::int64_t axis) { return sum(x, {axis}); }},
      {"squares", [](const Value& x, std::int64_t axis) { return sum(x * x, {axis}); }},
      {"prod", [](const Value& x, std::int64_t axis) { return prod(x, {axis}); }},
      {"sum of exponentials", [](const Value& x, std::int64_t axis) { return sum(exp(x), {axis}); }}};
  for (const cpu::CpuLevel level : cpu::allowed_levels(cpu::cpu_features())) {
    const Session session(Device::cpu(), {.threads = 1, .cache_folder = "", .cpu_level = std::string(cpu::to_string(level))});
    for (const auto& [name, op] : ops)
      for (const std::int64_t length : {3, 8, 12, 20, 33, 49})
        for (const bool columns : {false, true}) {
          const Build build = [&](const Values& in) { return op(in[0], columns ? 0 : 1); };
          const Array alone = run(session, {repeated(length, 1, columns)}, build),
                      y = run(session, {repeated(length, 203, columns)}, build);
          for (std::int64_t i = 0; i < y.size(); ++i)
            ASSERT_EQ(y.get_double(i), columns ? y.get_double(0) : alone.get_double(0))
                << cpu::to_string(level) << ": " << name << " of " << length << ", place " << i;
        }
  }
}

// -- edges

/// Lines that threads share: of a length that has no parts of one length too, alone and in a batch.
TEST(Sums, OfVeryLongLinesAreThoseOfTheirParts) {
  const std::map<std::string, std::function<Value(const Value&)>> ops{{"sum", [](const Value& x) { return sum(x, {1}); }},
                                                                      {"max", [](const Value& x) { return reduce_max(x, {1}); }},
                                                                      {"min", [](const Value& x) { return reduce_min(x, {1}); }},
                                                                      {"prod", [](const Value& x) { return prod(x * 1e-6 + 1, {1}); }}};
  for (const DType dtype : {f64, f32, bf16, i32})
    for (const std::int64_t length : {1 << 18, 300000, 262147}) {
      const Array x = numbers(dtype, {3, length}, -5, 9),
                  first = run({x}, [](const Values& in) { return slice(in[0], {0, 0}, {1, in[0].dim(1)}, {1, 1}); });
      for (const auto& [name, op] : ops) {
        if (name == "prod" && dtype != f64) continue;  // of others the factors are rounded
        const Build build = [&](const Values& in) { return op(in[0]); };
        const Array seen = run({x}, build), alone = run({first}, build),
                    wide = run({x}, [&](const Values& in) { return op(cast(in[0], is_float(dtype) ? f64 : i64)); });
        EXPECT_TRUE(std::ranges::equal(alone.bytes(), seen.bytes().first(alone.bytes().size()))) << name << " of " << length;
        const double bound = dtype == f64 || dtype == i32 ? 1e-13 : dtype == f32 ? 2e-7 : 0x1p-8;
        for (std::int64_t i = 0; i < 3; ++i)
          EXPECT_NEAR(seen.get_double(i), wide.get_double(i), bound * std::abs(wide.get_double(i)))
              << name << " of " << length << " " << rlx::name(dtype);
      }
    }
}

TEST(Sums, KeepInfinitiesAndNaN) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  for (const Sizes& shape : {Sizes{1, 5000}, Sizes{5000, 1}, Sizes{70, 90}})
    for (const DType dtype : {f32, f64, bf16}) {
      Array x = numbers(dtype, shape);
      const Build all = [](const Values& in) { return sum(in[0], {0, 1}); };
      x.set_double(4000, infinity);
      EXPECT_EQ(run({x}, all).get_double(0), infinity);
      x.set_double(10, -infinity);
      EXPECT_TRUE(std::isnan(run({x}, all).get_double(0)));
      x.set_double(10, 0), x.set_double(4000, std::nan(""));
      EXPECT_TRUE(std::isnan(run({x}, all).get_double(0)));
    }
  Array columns = numbers(f32, {600, 20});
  columns.set_double(20 * 300 + 7, infinity);
  const Array y = run({columns}, [](const Values& in) { return sum(in[0], {0}); });
  for (std::int64_t i = 0; i < 20; ++i) EXPECT_EQ(y.get_double(i) == infinity, i == 7);
}

TEST(Sums, OfLengthsKnownAtRunTime) {
  const Session session(Device::cpu(), {.threads = 2, .cache_folder = ""});
  for (const bool columns : {false, true}) {
    Graph graph;
    const Dim n = Dim::symbol("N", 100000);
    const Value x = graph.input("x", columns ? Dims{n, 10} : Dims{10, n}, f32);
    graph.output("y", sum(x, {columns ? 0 : 1}));
    const Executable executable = session.compile(graph);
    for (const std::int64_t length : {1, 15, 16, 17, 500, 512, 513, 1024, 1100, 70001}) {
      const Array in = numbers(f32, columns ? Sizes{length, 10} : Sizes{10, length});
      const Array y = executable.run({{"x", in}}).at("y");
      for (std::int64_t i = 0; i < 10; ++i) {
        long double want = 0;
        for (std::int64_t k = 0; k < length; ++k) want += in.get_double(columns ? k * 10 + i : i * length + k);
        // A lane of 8 adds up 62 of 500 terms, each of which rounds a partial sum of an eighth.
        EXPECT_NEAR(y.get_double(i), static_cast<double>(want), 4 * 0x1p-24 * static_cast<double>(want)) << length;
      }
    }
  }
}

}  // namespace sums_test
}  // namespace rlx::test
