// Ops on bits against counting one bit after the other.
#include <algorithm>
#include <bit>
#include <cstring>

#include "ops/both.h"
#include "rlx/ops.h"
#include "rlx/transform.h"

namespace rlx::test {
namespace bits_test {

constexpr double infinity = std::numeric_limits<double>::infinity();

Doubles of(DType dtype, const Doubles& x, const std::function<Value(Value)>& op) {
  return run({array_of(dtype, {static_cast<std::int64_t>(x.size())}, x)}, [&](const Values& v) { return op(v[0]); });
}

TEST(Bits, CountsAgreeWithTheStandardLibrary) {
  for (DType dtype : {i8, i16, i32, i64, u8, u16, u32, u64, i4, u4}) {
    const int width = info(dtype).bits;
    Array x(dtype, {6});
    const std::uint64_t patterns[]{0, 1, 6, std::uint64_t{1} << (width - 1), ~std::uint64_t{0}, 0x123456789abcdef5};
    Doubles set, leading;
    for (std::int64_t i = 0; i < x.size(); ++i) {
      const std::uint64_t pattern = patterns[i], bits = width == 64 ? pattern : pattern & ((std::uint64_t{1} << width) - 1);
      is_unsigned_int(dtype) ? x.set_uint(i, bits) : x.set_int(i, static_cast<std::int64_t>(bits << (64 - width)) >> (64 - width));
      set.push_back(std::popcount(bits));
      leading.push_back(std::countl_zero(bits) - (64 - width));
    }
    SCOPED_TRACE(name(dtype));
    EXPECT_EQ(run({x}, [](const Values& v) { return population_count(v[0]); }), set);
    EXPECT_EQ(run({x}, [](const Values& v) { return clz(v[0]); }), leading);
  }
}

/// The bytes of what was computed of these bytes, read as `from` and then as `to`.
std::vector<std::byte> read_as(DType from, DType to, std::vector<std::int64_t> shape, const std::vector<std::byte>& bytes) {
  Array x(from, std::move(shape));
  std::copy(bytes.begin(), bytes.end(), x.mutable_bytes().begin());
  Graph graph;
  const Value y = bitcast(graph.input("x", Dims(x.shape().begin(), x.shape().end()), from), to);
  graph.output("y", y);
  const std::vector<Array> seen = evaluate(graph, {{"x", x}});
  EXPECT_EQ(seen[0].dtype(), to);
  return {seen[0].bytes().begin(), seen[0].bytes().end()};
}

TEST(Bitcast, ElementsAreWordsOfOtherTypesAsInMemory) {
  std::vector<std::byte> bytes;
  for (int i = 0; i < 48; ++i) bytes.push_back(static_cast<std::byte>(1 + 5 * i));  // no float of it is NaN
  const std::vector<DType> types{i8, u8, i16, u16, f16, bf16, i32, u32, f32, i64, u64, f64, f8e5m2};
  for (DType from : types)
    for (DType to : types) {
      const int ratio = std::max(1, info(to).bits / info(from).bits);
      const std::int64_t count = 48 * 8 / info(from).bits;
      EXPECT_EQ(read_as(from, to, {count / ratio, ratio}, bytes), bytes) << name(from) << " as " << name(to);
    }
  const Doubles halves = both({array_of(u8, {2}, {0xa3, 0x4f})}, [](const Values& v) { return cast(bitcast(v[0], u4), u8); });
  EXPECT_EQ(halves, (Doubles{3, 10, 15, 4}));
  EXPECT_EQ(both({array_of(f32, {2}, {1, -2})}, [](const Values& v) { return bitcast(v[0], u16); }), (Doubles{0, 0x3f80, 0, 0xc000}));
}

TEST(Bitcast, Errors) {
  Graph graph;
  const Value x = graph.input("x", {4, 3}, u8);
  EXPECT_THROW(bitcast(x, u32), Error);
  EXPECT_THROW(bitcast(x, boolean), Error);
  EXPECT_THROW(bitcast(graph.input("y", {}, u16), f64), Error);
  EXPECT_THROW(bitcast(graph.input("z", {2}, c64), f32), Error);
}

/// Every bit pattern of a type that is a number, in order.
Doubles numbers_of(DType dtype) {
  const std::int64_t count = std::int64_t{1} << info(dtype).bits;
  Array all(dtype, {count});
  const auto bytes = all.mutable_bytes();
  for (std::int64_t i = 0; i < count; ++i)
    std::memcpy(&bytes[static_cast<std::size_t>(i * info(dtype).bits / 8)], &i, bytes.size() / count);
  Doubles numbers = values_of(all);
  std::erase_if(numbers, [](double v) { return std::isnan(v) || (v == 0 && std::signbit(v)); });
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

TEST(NextAfter, IsTheNeighbourOfEveryNumberOfNarrowTypes) {
  for (DType dtype : {f16, bf16, f8e4m3, f8e5m2}) {
    SCOPED_TRACE(name(dtype));
    const Doubles numbers = numbers_of(dtype);
    const auto count = static_cast<std::int64_t>(numbers.size());
    const Array x = array_of(dtype, {count}, numbers);
    for (const double end : {numbers.front(), numbers.back(), 0.0}) {
      Doubles wanted;
      for (std::size_t i = 0; i < numbers.size(); ++i)
        wanted.push_back(numbers[i] < end ? numbers[i + 1] : numbers[i] > end ? numbers[i - 1] : end);
      EXPECT_EQ(both({x, array_of(dtype, {}, {end})}, [](const Values& v) { return nextafter(v[0], v[1]); }), wanted) << end;
    }
  }
}

TEST(NextAfter, IsThatOfTheStandardLibrary) {
  Doubles x, z, wanted, narrow;
  for (double a : {0.0, -0.0, 1.0, -1.0, 0x1p-126, -0x1p-126, 0x1p-149, -0x1p-149, 0x1.fffffep127, infinity, -infinity, nan, 1.5})
    for (double b : {0.0, -0.0, 1.0, -1.0, 0x1p-149, infinity, -infinity, nan})
      x.push_back(a), z.push_back(b), wanted.push_back(std::nextafter(a, b)),
          narrow.push_back(std::nextafter(static_cast<float>(a), static_cast<float>(b)));
  const auto size = static_cast<std::int64_t>(x.size());
  const auto next = [&](DType t) {
    return both({array_of(t, {size}, x), array_of(t, {size}, z)}, [](const Values& v) { return nextafter(v[0], v[1]); });
  };
  const Doubles seen = next(f64), seen_narrow = next(f32);
  expect_near(seen, wanted, 0);
  expect_near(seen_narrow, narrow, 0);
  for (std::size_t i = 0; i < x.size(); ++i) EXPECT_TRUE(std::isnan(seen[i]) || std::signbit(seen[i]) == std::signbit(wanted[i])) << i;
  Graph graph;
  const Value one = graph.input("x", {}, f32);
  EXPECT_EQ(error_of([&] { grad(nextafter(one, one), {one}); }),
            "rlx.nextafter: not differentiable: it steps by one unit in the last place");
}

TEST(Bits, LogicalShiftsFillWithZeros) {
  for (DType t : {i8, i16, i32, i64, i4}) {
    const int width = info(t).bits;
    const double top = std::exp2(width - 1), w = width;
    const Array x = array_of(t, {7}, {-1, -1, -1, -2, -1, -top, 5}), z = array_of(t, {7}, {0, 1, w - 1, 1, -1, w - 1, 1});
    EXPECT_EQ(both({x, z}, [](const Values& v) { return shr_logical(v[0], v[1]); }), (Doubles{-1, top - 1, 1, top - 1, 0, 1, 2}));
  }
  EXPECT_EQ(both({ints({2}, {-1, 7}), ints({2}, {32, 2147483647})}, [](const Values& v) { return shr_logical(v[0], v[1]); }),
            (Doubles{0, 0}));
}

TEST(Bits, Reductions) {
  const Array x = ints({2, 3}, {12, 10, -1, 5, 0, 3});
  EXPECT_EQ(run({x}, [](const Values& v) { return reduce_or(v[0], {0}); }), (Doubles{13, 10, -1}));
  EXPECT_EQ(run({x}, [](const Values& v) { return reduce_and(v[0], {0}); }), (Doubles{4, 0, 3}));
  EXPECT_EQ(run({x}, [](const Values& v) { return reduce_xor(v[0], {-1}); }), (Doubles{~(12 ^ 10), 6}));
  EXPECT_EQ(run_all({x}, [](const Values& v) { return Values{reduce_xor(v[0], {0, 1}, true)}; })[0].shape(),
            (std::vector<std::int64_t>{1, 1}));
  const Array nothing(u8, {0, 1});
  EXPECT_EQ(run({nothing}, [](const Values& v) { return concat({reduce_or(v[0], {0}), reduce_and(v[0], {0}), reduce_xor(v[0], {0})}, 0); }),
            (Doubles{0, 255, 0}));
  EXPECT_EQ(of(boolean, {0, 1, 1}, [](Value v) { return reduce_xor(v, {0}); }), (Doubles{0}));
}

TEST(Bits, ReducePrecisionAgreesWithCasts) {
  Doubles x{0, 1, -1.00390625, 1.01171875, 3.0, 1e-3, 65520, -65519, 70000, 3e38, 1e-4, infinity, -infinity, nan};
  expect_near(of(f32, x, [](Value v) { return reduce_precision(v, 8, 7); }), of(f32, x, [](Value v) { return cast(v, bf16); }), 0);
  expect_near(of(f32, x, [](Value v) { return reduce_precision(v, 5, 10); }), of(f32, x, [](Value v) { return cast(v, f16); }), 0);
  expect_near(of(f64, x, [](Value v) { return reduce_precision(v, 8, 23); }), of(f64, x, [](Value v) { return cast(v, f32); }), 0);
  expect_near(of(f32, x, [](Value v) { return reduce_precision(v, 8, 23); }), of(f32, x, [](Value v) { return v * 1; }), 0);
}

TEST(Bits, ReducePrecisionFlushesAndRoundsToEven) {
  // The smallest normal f16 is 2^-14; JAX flushes what is smaller.
  EXPECT_EQ(of(f32, {0x1p-14, 0x1p-15, -0x1p-15}, [](Value v) { return reduce_precision(v, 5, 10); }), (Doubles{0x1p-14, 0, -0.0}));
  // Without a mantissa the last bit is that of the exponent, 127 for 1: 1.5 goes to 2, 3 to 2, 6 to 8.
  EXPECT_EQ(of(f32, {1.5, 2.5, 3, 5, 6, 7}, [](Value v) { return reduce_precision(v, 8, 0); }), (Doubles{2, 2, 2, 4, 8, 8}));
}

TEST(Bits, Errors) {
  Graph graph;
  const Value x = graph.input("x", {2}, f32), n = graph.input("n", {2}, i32);
  EXPECT_EQ(error_of([&] { clz(x); }), "rlx.clz: f32[2] is not allowed (allowed: integers)");
  EXPECT_EQ(error_of([&] { reduce_or(x, {0}); }), "rlx.reduce_or: f32[2] is not allowed (allowed: integers, bool)");
  EXPECT_EQ(error_of([&] { reduce_precision(n, 8, 7); }), "rlx.reduce_precision: i32 is not allowed (allowed: f64, f32, bf16, f16)");
  EXPECT_EQ(error_of([&] { reduce_precision(x, 0, 7); }),
            "rlx.reduce_precision: 0 exponent bits and 7 mantissa bits (allowed: at least 1 and 0)");
}

}  // namespace bits_test
}  // namespace rlx::test
