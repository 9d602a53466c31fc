// What a program writes beside graphs: numbers in comparisons, arrays of narrow floats, types as text, the names of what it called.
#include <cstdint>
#include <sstream>

#include <gtest/gtest.h>
#include <rlx/rlx.h>

namespace {

using namespace rlx;

template <class T>
std::string shown(const T& value) {
  std::ostringstream out;
  out << value;
  return out.str();
}

TEST(Values, ComparisonsTakeNumbersOnEitherSide) {
  Graph graph;
  const Value x = graph.input("x", {3}, f32), n = graph.input("n", {3}, i8);
  const std::pair<const char*, Value> comparisons[] = {{"eq", eq(x, 2)}, {"ne", ne(x, 2)}, {"lt", lt(x, 2)},   {"le", le(x, 2)},
                                                       {"gt", gt(x, 2)}, {"ge", ge(2, x)}, {"less", lt(2, x)}, {"i8", le(n, 100)}};
  for (const auto& [name, value] : comparisons) graph.output(name, value);
  const std::vector<float> floats{1, 2, 3};
  const std::vector<std::int8_t> integers{99, 100, 101};
  const Outputs out = Session().compile(graph).run({{"x", floats}, {"n", integers}});
  const std::pair<const char*, int> expected[] = {{"eq", 10}, {"ne", 101}, {"lt", 100}, {"le", 110},
                                                  {"gt", 1},  {"ge", 110}, {"less", 1}, {"i8", 110}};
  for (const auto& [name, digits] : expected) {
    const Array& truth = out.at(name);
    EXPECT_EQ(100 * truth.get_int(0) + 10 * truth.get_int(1) + truth.get_int(2), digits) << name;
  }
  EXPECT_THROW(lt(n, 0.5), Error);
  EXPECT_THROW(gt(n, 128), Error);
}

TEST(Values, ArraysOfNarrowFloatsAreMadeOfFloatsAndReadAsSuch) {
  const std::vector<float> values{1, -2.5F, 1.0009765625F, 65504, 1e-8F, 0};
  const Array half = Array::of(f16, {2, 3}, values), brain = Array::of(bf16, {6}, values);
  EXPECT_EQ(half.shape(), (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(half.floats(), (std::vector<float>{1, -2.5F, 1.0009765625F, 65504, 0, 0}));  // exact, and below the least of f16
  EXPECT_EQ(brain.floats(), (std::vector<float>{1, -2.5F, 1, 65536, 0x1.58p-27F, 0}));   // 8 bits of precision, to the nearest
  EXPECT_EQ(Array::of(i32, {6}, values).floats(), (std::vector<float>{1, -2, 1, 65504, 0, 0}));
  EXPECT_THROW(Array::of(bf16, {5}, values), Error);
  EXPECT_THROW(Array::of(c64, {6}, values), Error);
  EXPECT_THROW(Array(c64, {1}).floats(), Error);
}

TEST(Values, TypesAndSizesArePrinted) {
  const Type type{bf16, {Dim::symbol("B", 8), 2 * Dim::symbol("S", 9) - 1}};
  EXPECT_EQ(shown(type), "bf16[B,2*S-1]");
  EXPECT_EQ(shown(type.dim(1)), "2*S-1");
  EXPECT_EQ(shown(type.dtype), "bf16");
  EXPECT_EQ(fmt::format("{} {} {:>6}|", type, type.dim(0), type.dtype), "bf16[B,2*S-1] B   bf16|");
}

TEST(Values, AnErrorNamesTheFunctionThatWasCalled) {
  Graph graph;
  const Value x = graph.input("x", {2, 3}, f32), z = graph.input("z", {4, 5}, f32);
  const auto error_of = [](const auto& call) {
    try {
      call();
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(error_of([&] { matmul(x, z); }).substr(0, 12), "rlx.matmul: ");
  EXPECT_EQ(error_of([&] { sum(x, {1, -1}); }).substr(0, 9), "rlx.sum: ");
  EXPECT_EQ(error_of([&] { dot(x, z, {1}, {0}); }).substr(0, 9), "rlx.dot: ");
  EXPECT_EQ(error_of([&] { softmax(x, 4); }).substr(0, 13), "rlx.softmax: ");
  EXPECT_EQ(error_of([&] { sum(x, {4}); }).substr(0, 9), "rlx.sum: ");
  EXPECT_EQ(error_of([&] { reduce_max(x, {4}); }).substr(0, 16), "rlx.reduce_max: ");
  EXPECT_EQ(error_of([&] { reduce_and(x, {4}); }).substr(0, 16), "rlx.reduce_and: ");
  EXPECT_EQ(error_of([&] { argsort(x, 4); }).substr(0, 13), "rlx.argsort: ");
  EXPECT_EQ(error_of([&] { stack({x, x}, 4); }).substr(0, 11), "rlx.stack: ");
  EXPECT_EQ(error_of([&] { l1(x, z); }).substr(0, 8), "rlx.l1: ");
  EXPECT_EQ(error_of([&] { where(gt(x, 0), z, x); }).substr(0, 11), "rlx.where: ");
  EXPECT_EQ(error_of([&] { x + z; }).substr(0, 9), "rlx.add: ");
  EXPECT_EQ(error_of([&] { gt(x, 0) + 1; }).substr(0, 9), "rlx.add: ");
}

}  // namespace
