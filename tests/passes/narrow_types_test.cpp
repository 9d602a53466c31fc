// 8-bit floats and packed 4-bit integers in generated kernels: every number, every rounding.
#include <gtest/gtest.h>

#include <bit>

#include "passes/kernels_only.h"
#include "rlx/ops.h"

namespace rlx::test {
namespace {

// 8-bit floats.

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

// 4-bit integers.

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

}  // namespace
}  // namespace rlx::test
