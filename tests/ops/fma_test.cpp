// fma rounds once: the reference and compiled programs against numbers worked out by hand, and against exact integer arithmetic.
#include <bit>

#include "ops/evaluated.h"
#include "rlx/session.h"

namespace rlx {
namespace fma_test {

using namespace test;

/// fma of three vectors by the reference, then by a compiled program.
std::vector<Doubles> both(DType t, const Doubles& x, const Doubles& y, const Doubles& z) {
  const auto n = static_cast<std::int64_t>(x.size());
  Graph graph("fma");
  graph.output("y", fma(graph.input("x", {n}, t), graph.input("y", {n}, t), graph.input("z", {n}, t)));
  const Array a = array_of(t, {n}, x), b = array_of(t, {n}, y), c = array_of(t, {n}, z);
  const Array compiled = Session().compile(graph).run({{"x", a}, {"y", b}, {"z", c}}).at("y");
  return {values_of(evaluate(graph, {{"x", a}, {"y", b}, {"z", c}})[0]), values_of(compiled)};
}

struct Case {
  DType dtype;
  double x, y, z, wanted;
};

TEST(Fma, RoundsOnceWhereTwoRoundingsGiveAnotherNumber) {
  const std::vector<Case> cases{
      // (1 + e)^2 - (1 + 2e) = e^2, which a rounded product loses.
      {f32, 1 + 0x1p-12, 1 + 0x1p-12, -1 - 0x1p-11, 0x1p-24},
      {f64, 1 + 0x1p-27, 1 + 0x1p-27, -1 - 0x1p-26, 0x1p-54},
      // A product half way between two numbers, which the tiny addend decides; f64 (f32 for f16) rounds the addend away first.
      {f32, 24929, 673, 0x1p-60, 16777218},   // 16777217, between 16777216 and 16777218
      {f32, 24929, 673, -0x1p-60, 16777216},  //
      {f16, 3, 683, 0x1p-14, 2050},           // 2049, between 2048 and 2050
      {f16, 3, 683, -0x1p-14, 2048},          //
      {bf16, 7, 37, -0x1p-100, 258},          // 259, between 258 and 260
      {bf16, 7, 37, 0x1p-100, 260},           //
      {bf16, 7, -37, 0x1p-100, -258},
      {bf16, 7, 37, 0, 260},  // a true tie goes to the even one
      // The product alone would overflow.
      {f32, 0x1p127, 2, -0x1p127, 0x1p127},
      {f16, 32768, 2, -32768, 32768},
      {bf16, 0x1p127, 2, -0x1p127, 0x1p127},
  };
  for (const Case& c : cases)
    for (const Doubles& seen : both(c.dtype, {c.x}, {c.y}, {c.z}))
      EXPECT_EQ(seen[0], c.wanted) << name(c.dtype) << " " << c.x << " * " << c.y << " + " << c.z;
}

TEST(Fma, SpecialNumbersAreThoseOfIeee) {
  for (DType t : {f32, f64, f16, bf16})
    for (const Doubles& seen : both(t, {INFINITY, INFINITY, 0, 2, 2, -1}, {2, 0, INFINITY, 3, NAN, 0}, {1, 1, 1, -INFINITY, 1, -0.0})) {
      EXPECT_EQ(seen[0], INFINITY);
      EXPECT_TRUE(std::isnan(seen[1]) && std::isnan(seen[2]) && std::isnan(seen[4]));
      EXPECT_EQ(seen[3], -INFINITY);
      EXPECT_TRUE(seen[5] == 0 && std::signbit(seen[5]));
    }
}

/// units * 2^-24 rounded to `digits` binary digits, half to even, by integers only.
double rounded(std::int64_t units, int digits) {
  const std::uint64_t magnitude = units < 0 ? 0 - static_cast<std::uint64_t>(units) : static_cast<std::uint64_t>(units);
  const int surplus = std::max(static_cast<int>(std::bit_width(magnitude)) - digits, 0);
  std::uint64_t kept = magnitude >> surplus;
  const std::uint64_t rest = magnitude - (kept << surplus), half = surplus > 0 ? std::uint64_t{1} << (surplus - 1) : 1;
  if (surplus > 0 && (rest > half || (rest == half && kept % 2 == 1))) ++kept;
  return std::ldexp(units < 0 ? -static_cast<double>(kept) : static_cast<double>(kept), surplus - 24);
}

TEST(Fma, NarrowTypesAgreeWithExactIntegers) {
  constexpr double smallest_normal = 0x1p-14;  // of f16; kernels flush what is smaller in bf16's sense only, but need not be asked
  std::mt19937 generator(11);
  const auto between = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(generator); };
  for (const auto& [t, digits] : {std::pair{f16, 11}, {bf16, 8}}) {
    Doubles x, y, z, wanted;
    const auto mantissa = [&] { return between(1 << (digits - 1), (1 << digits) - 1) * (between(0, 1) * 2 - 1); };
    while (wanted.size() < 200000) {
      const std::int64_t a = mantissa(), b = mantissa(), c = mantissa();
      const int ea = between(-12, -6), eb = between(-12, -6), ec = between(-20, -4);
      const double exact = rounded(a * b * (std::int64_t{1} << (ea + eb + 24)) + c * (std::int64_t{1} << (ec + 24)), digits);
      if (exact != 0 && std::fabs(exact) < smallest_normal) continue;
      x.push_back(std::ldexp(static_cast<double>(a), ea));
      y.push_back(std::ldexp(static_cast<double>(b), eb));
      z.push_back(std::ldexp(static_cast<double>(c), ec));
      wanted.push_back(exact);
    }
    for (const Doubles& seen : both(t, x, y, z)) EXPECT_EQ(seen, wanted) << name(t);
  }
}

TEST(Fma, OperandsArePromotedAndBroadcast) {
  const Array x = array_of(bf16, {2, 1}, {1, 2}), y = array_of(f32, {3}, {1, 2, 3}), z = array_of(f32, {}, {10});
  const Array seen = computed({x, y, z}, [](const Values& v) { return fma(v[0], v[1], v[2]); });
  EXPECT_EQ(seen, array_of(f32, {2, 3}, {11, 12, 13, 12, 14, 16}));
  EXPECT_EQ(computed({z, y, x}, [](const Values& v) { return fma(v[0], v[1], v[2]); }), array_of(f32, {2, 3}, {11, 21, 31, 12, 22, 32}));
  Graph graph("test");
  const Value i = graph.input("i", {2}, i32);
  EXPECT_EQ(error_of([&] { fma(i, i, i); }), "rlx.fma: i32 is not allowed (allowed: f64, f32, f16, bf16)");
}

}  // namespace fma_test
}  // namespace rlx
