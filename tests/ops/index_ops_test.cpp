// Small values worked out by hand: iota, gather, scatter, dynamic slices, sorting, running sums.
#include <gtest/gtest.h>

#include "ops/values.h"
#include "rlx/ops.h"

namespace rlx::test {
namespace index_ops_test {

const double nan = std::nan("");
const Array matrix = floats({3, 2}, {1, 2, 3, 4, 5, 6});

TEST(Iota, CountsAlongItsAxis) {
  EXPECT_EQ(run({matrix}, [](const Values& x) { return iota(x[0], {2, 3}, i32, 1); }), (Doubles{0, 1, 2, 0, 1, 2}));
  EXPECT_EQ(run({matrix}, [](const Values& x) { return iota(x[0], {2, 3}, f32, 0); }), (Doubles{0, 0, 0, 1, 1, 1}));
  EXPECT_EQ(error_of([] { run({matrix}, [](const Values& x) { return iota(x[0], {2}, boolean); }); }),
            "rlx.iota: bool cannot count (allowed: integers and floats)");
}

TEST(Gather, ClipMovesWindowsInside) {
  const GatherNumbers rows{{1}, {0}, {0}};
  EXPECT_EQ(run({matrix, ints({3, 1}, {2, -5, 9})}, [&](const Values& x) { return gather(x[0], x[1], rows, {1, 2}); }),
            (Doubles{5, 6, 1, 2, 5, 6}));
  // Windows of two rows: the last start that fits is 1.
  const GatherNumbers pairs{{1, 2}, {}, {0}};
  EXPECT_EQ(run({matrix, ints({1, 1}, {2})}, [&](const Values& x) { return gather(x[0], x[1], pairs, {2, 2}); }), (Doubles{3, 4, 5, 6}));
}

TEST(Gather, FillReadsNothingOfAWindowPartlyOutside) {
  const GatherNumbers pairs{{1}, {}, {0}};
  const auto run_fill = [&](const Array& x) {
    return run({x, ints({3, 1}, {0, 2, -1})}, [&](const Values& v) { return gather(v[0], v[1], pairs, {2}, IndexMode::fill); });
  };
  const Doubles seen = run_fill(floats({3}, {1, 2, 3}));
  EXPECT_EQ((Doubles{seen[0], seen[1]}), (Doubles{1, 2}));
  for (std::size_t i = 2; i < 6; ++i) EXPECT_TRUE(std::isnan(seen[i])) << i;
  EXPECT_EQ(run_fill(array_of(i16, {3}, {1, 2, 3})), (Doubles{1, 2, -32768, -32768, -32768, -32768}));
  EXPECT_EQ(run_fill(array_of(u8, {3}, {1, 2, 3})), (Doubles{1, 2, 255, 255, 255, 255}));
}

TEST(Gather, NamesWhatIsWrong) {
  const GatherNumbers rows{{1}, {0}, {0}};
  EXPECT_EQ(error_of([&] { run({matrix, floats({3, 1}, {0, 0, 0})}, [&](const Values& x) { return gather(x[0], x[1], rows, {1, 2}); }); }),
            "rlx.gather: indices are f32[3,1] (allowed: integers of rank >= 1)");
  EXPECT_EQ(error_of([&] { run({matrix, ints({3, 1}, {0, 0, 0})}, [&](const Values& x) { return gather(x[0], x[1], rows, {1, 3}); }); }),
            "rlx.gather: slice size 3 along axis 1 of f32[3,2] (allowed: 0..2)");
}

TEST(Take, ReplacesTheAxisByTheIndices) {
  EXPECT_EQ(run({matrix, ints({2, 2}, {1, 0, 0, 7})}, [](const Values& x) { return take(x[0], x[1], 1); }),
            (Doubles{2, 1, 1, 2, 4, 3, 3, 4, 6, 5, 5, 6}));
  EXPECT_EQ(run({matrix, ints({}, {-1})}, [](const Values& x) { return take(x[0], x[1], 0, IndexMode::fill); }), (Doubles{5, 6}));
  EXPECT_EQ(run({matrix, ints({3, 1}, {1, 0, 1})}, [](const Values& x) { return take_along_axis(x[0], x[1], 1); }), (Doubles{2, 3, 6}));
  EXPECT_EQ(run({matrix, ints({1, 2}, {2, 0})}, [](const Values& x) { return take_along_axis(x[0], x[1], 0); }), (Doubles{5, 2}));
}

TEST(Scatter, CombinesInOrder) {
  const GatherNumbers elements{{}, {0}, {0}};
  const Array x = floats({4}, {1, 1, 1, 1}), at = ints({4, 1}, {1, 3, 1, 9}), updates = floats({4}, {2, 3, 5, 7});
  const auto with = [&](ScatterKind kind, IndexMode mode) {
    return run({x, at, updates}, [&](const Values& v) { return scatter(v[0], v[1], v[2], elements, kind, mode); });
  };
  EXPECT_EQ(with(ScatterKind::set, IndexMode::fill), (Doubles{1, 5, 1, 3}));
  EXPECT_EQ(with(ScatterKind::set, IndexMode::clip), (Doubles{1, 5, 1, 7}));
  EXPECT_EQ(with(ScatterKind::add, IndexMode::fill), (Doubles{1, 8, 1, 4}));
  EXPECT_EQ(with(ScatterKind::mul, IndexMode::fill), (Doubles{1, 10, 1, 3}));
  EXPECT_EQ(with(ScatterKind::max, IndexMode::fill), (Doubles{1, 5, 1, 3}));
  EXPECT_EQ(with(ScatterKind::min, IndexMode::fill), (Doubles{1, 1, 1, 1}));
}

TEST(Scatter, DropsAWindowPartlyOutside) {
  const GatherNumbers pairs{{1}, {}, {0}};
  EXPECT_EQ(run({floats({3}, {0, 0, 0}), ints({2, 1}, {2, 0}), floats({2, 2}, {1, 2, 3, 4})},
                [&](const Values& v) { return scatter(v[0], v[1], v[2], pairs, ScatterKind::add, IndexMode::fill); }),
            (Doubles{3, 4, 0}));
}

TEST(DynamicSlice, ClampsAndOnDemandWrapsStarts) {
  const auto sliced = [](double start, bool wrap) {
    return run({floats({5}, {0, 1, 2, 3, 4}), ints({}, {start})}, [&](const Values& x) { return dynamic_slice(x[0], {x[1]}, {2}, wrap); });
  };
  EXPECT_EQ(sliced(1, false), (Doubles{1, 2}));
  EXPECT_EQ(sliced(9, false), (Doubles{3, 4}));
  EXPECT_EQ(sliced(-3, false), (Doubles{0, 1}));
  EXPECT_EQ(sliced(-3, true), (Doubles{2, 3}));
  EXPECT_EQ(sliced(-9, true), (Doubles{0, 1}));
}

TEST(DynamicUpdate, ReplacesAWindow) {
  EXPECT_EQ(run({matrix, floats({2, 1}, {7, 8}), ints({}, {5}), ints({}, {1})},
                [](const Values& x) { return dynamic_update(x[0], x[1], {x[2], x[3]}); }),
            (Doubles{1, 2, 3, 7, 5, 8}));
}

TEST(Cumulative, RunsBothWays) {
  const Array x = floats({4}, {1, 2, 3, 4});
  EXPECT_EQ(run({x}, [](const Values& v) { return cumsum(v[0], 0); }), (Doubles{1, 3, 6, 10}));
  EXPECT_EQ(run({x}, [](const Values& v) { return cumsum(v[0], 0, true); }), (Doubles{0, 1, 3, 6}));
  EXPECT_EQ(run({x}, [](const Values& v) { return cumprod(v[0], 0, false, true); }), (Doubles{24, 24, 12, 4}));
  EXPECT_EQ(run({x}, [](const Values& v) { return cumprod(v[0], 0, true, true); }), (Doubles{24, 12, 4, 1}));
  EXPECT_EQ(run({floats({4}, {1, 3, 2, 5})}, [](const Values& v) { return cummax(v[0], 0); }), (Doubles{1, 3, 3, 5}));
  EXPECT_EQ(run({array_of(i8, {3}, {100, 100, 100})}, [](const Values& v) { return cumsum(v[0], 0); }), (Doubles{100, -56, 44}));
}

TEST(Cumulative, DerivativesNeedNoDivision) {
  // d(x0, x0 x1, x0 x1 x2) at (2, 0, 3) along (1, 1, 1).
  EXPECT_EQ(run_jvp_of(floats({3}, {2, 0, 3}), floats({3}, {1, 1, 1}), [](Value x) { return cumprod(x, 0); }), (Doubles{1, 2, 6}));
  EXPECT_EQ(run_jvp_of(floats({2}, {1, 1}), floats({2}, {2, 4}), [](Value x) { return cummax(x, 0); }), (Doubles{2, 3}));
}

TEST(Sort, IsStableAndPutsNaNLast) {
  const auto sorted =
      run_all({floats({5}, {2, nan, 1, 2, -INFINITY}), ints({5}, {0, 1, 2, 3, 4})}, [](const Values& x) { return sort(x, 1, 0); });
  EXPECT_EQ(values_of(sorted[1]), (Doubles{4, 2, 0, 3, 1}));
  EXPECT_TRUE(std::isnan(sorted[0].get_double(4)));
  EXPECT_EQ(run({floats({5}, {2, nan, 1, 2, -INFINITY})}, [](const Values& x) { return argsort(x[0], 0, true); }),
            (Doubles{1, 0, 3, 2, 4}));
  const auto by_two = run_all({ints({4}, {1, 0, 1, 0}), ints({4}, {5, 6, 4, 7})}, [](const Values& x) { return sort(x, 2, 0); });
  EXPECT_EQ(values_of(by_two[0]), (Doubles{0, 0, 1, 1}));
  EXPECT_EQ(values_of(by_two[1]), (Doubles{6, 7, 4, 5}));
}

TEST(TopK, TakesTheFirstOfTies) {
  const auto top = run_all({floats({5}, {3, 7, 7, 1, 3})}, [](const Values& x) { return top_k(x[0], 3); });
  EXPECT_EQ(values_of(top[0]), (Doubles{7, 7, 3}));
  EXPECT_EQ(values_of(top[1]), (Doubles{1, 2, 0}));
  EXPECT_EQ(error_of([] { run_all({floats({2}, {1, 2})}, [](const Values& x) { return top_k(x[0], 3); }); }),
            "rlx.top_k: k = 3 along axis 0 of f32[2] (allowed: 0..2)");
}

TEST(ArgExtreme, TakesTheFirstOfTiesAndNaN) {
  const Array x = floats({2, 4}, {1, 5, 5, 0, 2, nan, 9, nan});
  EXPECT_EQ(run({x}, [](const Values& v) { return argmax(v[0]); }), (Doubles{1, 1}));
  EXPECT_EQ(run({x}, [](const Values& v) { return argmin(v[0]); }), (Doubles{3, 1}));
  EXPECT_EQ(run({floats({2}, {-INFINITY, -INFINITY})}, [](const Values& v) { return argmax(v[0], 0, true); }), (Doubles{0}));
}

}  // namespace index_ops_test
}  // namespace rlx::test
