// Running sums, products and extremes as sessions compute them: beside the reference, and beside exact sums of long lines.
#include <gtest/gtest.h>

#include <algorithm>

#include "backends/dummy_device.h"
#include "ops/values.h"
#include "passes/kernels_only.h"
#include "rlx/ops.h"

namespace rlx::test {
namespace cumulative_test {

Session session_of(int threads) {
  SessionOptions options = without_disk();
  options.threads = threads;
  return Session(Device::cpu(), options);
}

Value running(Value x, ReduceKind kind, std::int64_t axis, bool exclusive, bool reverse) {
  switch (kind) {
    case ReduceKind::sum: return cumsum(x, axis, exclusive, reverse);
    case ReduceKind::prod: return cumprod(x, axis, exclusive, reverse);
    case ReduceKind::max: return cummax(x, axis, reverse);
    default: return cummin(x, axis, reverse);
  }
}

/// Integers that sums and products of each type hold exactly, so that any order gives the same bits.
Array operand(DType type, const Dims& shape, ReduceKind kind, std::mt19937& random) {
  const bool is_unsigned = is_unsigned_int(type), is_exact = is_integer(type);
  Array x = random_array({type, shape}, is_unsigned ? 0 : is_exact ? -9 : -1, is_exact ? 9 : 1, random);
  if (is_exact) return x;
  for (std::int64_t i = 0; i < x.size(); ++i) {
    const double real = std::round(x.get_complex(i).real()), imaginary = kind == ReduceKind::prod ? 0 : std::round(x.get_complex(i).imag());
    x.set_complex(i, {kind == ReduceKind::prod && real == 0 ? 1 : real, imaginary});
  }
  return x;
}

TEST(Cumulative, EveryTypeKindAndAxis) {
  std::mt19937 random(1);
  for (const DType type : {f64, f32, f16, bf16, f8e4m3, f8e5m2, i8, i16, i32, i64, u8, u16, u32, u64, i4, u4, c64, c128}) {
    Graph graph;
    const Dims shape{3, 37, 5};
    const Value x = graph.input("x", shape, type);
    for (const ReduceKind kind : {ReduceKind::sum, ReduceKind::prod, ReduceKind::max, ReduceKind::min})
      for (const std::int64_t axis : {0, 1, 2})
        for (const bool exclusive : {false, true})
          for (const bool reverse : {false, true}) {
            if (is_complex(type) && (kind == ReduceKind::max || kind == ReduceKind::min)) continue;
            graph.output(fmt::format("y{} {} {} {}", static_cast<int>(kind), axis, exclusive, reverse),
                         running(x, kind, axis, exclusive, reverse));
          }
    const std::map<std::string, Array> inputs{{"x", operand(type, shape, ReduceKind::prod, random)}};
    const std::vector<Array> wanted = evaluate(graph, inputs);
    for (const int threads : {0, 1, 3}) {  // 0: on a device, in steps
      const Session session = threads == 0 ? Session(dummy_device(), without_disk()) : session_of(threads);
      const Outputs seen = session.compile(graph).run(feeds(inputs));
      SCOPED_TRACE(name(type));
      for (std::size_t i = 0; i < wanted.size(); ++i) {
        if (is_complex(type)) EXPECT_EQ(difference(seen[i], wanted[i]), 0);  // the signs of zeros depend on the order
        else expect_same_bytes(seen[i], wanted[i]);
      }
    }
  }
}

TEST(Cumulative, LongLinesHaveTheSameBitsAtAnyNumberOfThreads) {
  std::mt19937 random(2);
  for (const auto& [shape, axis] :
       {std::pair<Dims, std::int64_t>{{100003}, 0}, {{2, 20001, 3}, 1}, {{9000, 200}, 0}, {{0}, 0}, {{3, 0}, 0}, {{1}, 0}})
    for (const DType type : {f32, f64, i32})
      for (const bool reverse : {false, true}) {
        SCOPED_TRACE(fmt::format("{} {} reverse {}", to_string(shape), name(type), reverse));
        Graph graph;
        const Value x = graph.input("x", shape, type);
        graph.output("sum", cumsum(x, axis, true, reverse));
        graph.output("max", cummax(x, axis, reverse));
        const std::map<std::string, Array> inputs{{"x", random_array({type, shape}, -1000, 1000, random)}};
        const Outputs one = session_of(1).compile(graph).run(feeds(inputs));
        const std::vector<Array> wanted = evaluate(graph, inputs);
        for (const int threads : {2, 3}) {
          const Outputs more = session_of(threads).compile(graph).run(feeds(inputs));
          for (std::size_t i = 0; i < 2; ++i) expect_same_bytes(more[i], one[i]);
        }
        expect_same_bytes(one[1], wanted[1]);
        if (type == i32) expect_same_bytes(one[0], wanted[0]);
      }
}

/// The largest difference from exact sums, relative to them, of elements up to 1.
double error_of_sums(DType type, std::int64_t n) {
  std::mt19937 random(3);
  Graph graph;
  graph.output("y", cumsum(graph.input("x", {n}, type), 0));
  const Array x = random_array({type, {n}}, 0, 1, random);
  const Array y = session_of(2).compile(graph).run({{"x", x}}).at("y");
  long double sum = 0;
  double worst = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    sum += x.get_double(i);
    worst = std::max(worst, static_cast<double>(std::abs(static_cast<long double>(y.get_double(i)) - sum) / sum));
  }
  return worst;
}

TEST(Cumulative, SumsOfLongLinesAreRoundedOnce) {
  EXPECT_LE(error_of_sums(f32, 3000000), 0x1p-24 * 1.001);
  EXPECT_LE(error_of_sums(bf16, 300000), 0x1p-8 * 1.001);
  EXPECT_LE(error_of_sums(f16, 50000), 0x1p-11 * 1.001);
  EXPECT_LE(error_of_sums(f64, 3000000), 4e-15);  // of NumPy and torch 8.7e-14
}

TEST(Cumulative, NaNStays) {
  Graph graph;
  const Value x = graph.input("x", {9000}, f32);
  graph.output("y", cummax(x, 0));
  Array values(f32, {9000});
  for (std::int64_t i = 0; i < 9000; ++i) values.set_double(i, i == 5000 ? nan : static_cast<double>(i));
  const Array y = session_of(3).compile(graph).run({{"x", values}}).at("y");
  for (std::int64_t i = 0; i < 9000; ++i) ASSERT_EQ(std::isnan(y.get_double(i)), i >= 5000) << i;
}

}  // namespace cumulative_test
}  // namespace rlx::test
