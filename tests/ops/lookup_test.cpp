// searchsorted, interp and nonzero, options of resize, and padding by a ramp, against numbers computed by hand and by loops.
#include "ops/near.h"
#include "rlx/ops.h"
#include "rlx/transform.h"

namespace rlx::test {
namespace lookup_test {

TEST(Lookup, SearchSortedCountsFromTheLeftOrTheRight) {
  const Array table = floats({4}, {1, 2, 2, 5}), x = floats({2, 3}, {0, 1, 2, 3, 9, nan});
  EXPECT_EQ(run({table, x}, [](const Values& v) { return searchsorted(v[0], v[1]); }), (Doubles{0, 0, 1, 3, 4, 4}));
  EXPECT_EQ(run({table, x}, [](const Values& v) { return searchsorted(v[0], v[1], true); }), (Doubles{0, 1, 3, 3, 4, 4}));
}

TEST(Lookup, InterpInsideAtTheEndsAndAtASteps) {
  const Array x = array_of(f64, {7}, {-1, 0, 0.5, 1, 2.5, 4, 7}), xp = array_of(f64, {4}, {0, 1, 1, 4}),
              fp = array_of(f64, {4}, {2, 4, 10, 16});
  expect_close(run({x, xp, fp}, [](const Values& v) { return interp(v[0], v[1], v[2]); }), {2, 2, 3, 10, 13, 16, 16}, 1e-15);
  EXPECT_EQ(run({x, array_of(f64, {1}, {1}), array_of(f64, {1}, {5})}, [](const Values& v) { return interp(v[0], v[1], v[2]); }),
            Doubles(7, 5));
}

TEST(Lookup, InterpHasADerivativeInThePlacesOfTheTable) {
  // Between (x0, 0) and (x1, 2): y = 2 (x - x0) / (x1 - x0); at x = 1 of 0..4 dy/dx0 = -2 * 3 / 16, dy/dx1 = -2 * 1 / 16.
  const Array x = array_of(f64, {1}, {1}), xp = array_of(f64, {2}, {0, 4}), fp = array_of(f64, {2}, {0, 2});
  const Doubles slope =
      run({x, xp, fp}, [](const Values& v) { return vjp({interp(v[0], v[1], v[2])}, {v[1]}, {scalar(v[0], 1, f64) + v[0] * 0})[0]; });
  expect_close(slope, {-0.375, -0.125}, 1e-15);
}

TEST(Lookup, NonzeroFillsAndCuts) {
  const Array x = ints({2, 3}, {0, 7, 0, -1, 0, 2});
  for (std::int64_t size : {0, 2, 5}) {
    const auto places = run_all({x}, [&](const Values& v) { return nonzero(v[0], size, -1); });
    Doubles rows{0, 1, 1, -1, -1}, columns{1, 0, 2, -1, -1};
    rows.resize(static_cast<std::size_t>(size));
    columns.resize(static_cast<std::size_t>(size));
    EXPECT_EQ(values_of(places[0]), rows);
    EXPECT_EQ(values_of(places[1]), columns);
  }
}

TEST(Lookup, NonzeroOfASymbolicAxis) {
  Graph graph;
  const Value x = graph.input("x", {Dim::symbol("N", 9)}, i32);
  graph.output("y", nonzero(x, 3)[0]);
  EXPECT_EQ(values_of(evaluate(graph, {{"x", ints({5}, {0, 1, 0, 0, 1})}})[0]), (Doubles{1, 4, 0}));
}

TEST(Lookup, Errors) {
  Graph graph;
  const Value x = graph.input("x", {2, 2}, f32), v = graph.input("v", {3}, f32), s = graph.input("s", {}, i32);
  EXPECT_EQ(error_of([&] { searchsorted(x, v); }), "rlx.searchsorted: the table is f32[2,2] (allowed: one axis)");
  EXPECT_EQ(error_of([&] { interp(x, v, x); }), "rlx.interp: xp is f32[3], fp is f32[2,2] (allowed: one axis of the same size >= 1)");
  EXPECT_EQ(error_of([&] { nonzero(s, 2); }), "rlx.nonzero: i32[] has no axis");
  EXPECT_EQ(error_of([&] { nonzero(v, -1); }), "rlx.nonzero: size -1 (allowed: >= 0)");
}

TEST(ResizeOptions, AntialiasedHalvesAreWeightedMeans) {
  // The triangle stretched by 2 around 0.5 and 2.5 weighs its neighbours 1 3 3 1 (/ 8), what lies outside left out.
  const Array x = array_of(f64, {4}, {1, 2, 3, 7});
  expect_close(run({x}, [](const Values& v) { return resize(v[0], {2}, {.mode = ResizeMode::linear, .antialias = true}); }),
               {(3 * 1 + 3 * 2 + 3) / 7.0, (2 + 3 * 3 + 3 * 7) / 7.0}, 1e-15);
}

TEST(ResizeOptions, AntialiasChangesNothingWhereTheResultIsLarger) {
  const Array x = array_of(f64, {5}, {1, 2, 4, 3, 7});
  auto with = [&](bool antialias) {
    return run({x}, [&](const Values& v) {
      return resize(v[0], {11}, {.mode = ResizeMode::cubic, .antialias = antialias, .exclude_outside = true, .cubic_a = -0.5});
    });
  };
  EXPECT_EQ(with(true), with(false));
}

/// PyTorch 2.13: interpolate(x, size=(1, n), mode, align_corners=True, antialias=True) of one row.
TEST(ResizeOptions, AntialiasedCornersAreThoseOfPyTorch) {
  const Array x = array_of(f64, {7}, {1, 2, 4, 3, 7, 5, 6});
  const auto with = [&](ResizeMode mode, std::int64_t size) {
    return run({x}, [&](const Values& v) {
      return resize(v[0], {size}, {.mode = mode, .align_corners = true, .antialias = true, .cubic_a = -0.5});
    });
  };
  expect_close(with(ResizeMode::linear, 4), {1.857142857142857, 3.75, 5.625, 5.75}, 1e-14);
  expect_close(with(ResizeMode::linear, 1), {1}, 1e-14);
  expect_close(with(ResizeMode::linear, 9), {1, 1.625, 2.75, 3.875, 3.125, 5.5, 6.25, 5.125, 5.875}, 1e-14);
  expect_close(with(ResizeMode::cubic, 4), {1.6778242677824269, 3.72972972972973, 5.787313432835821, 5.7734375}, 1e-14);
  expect_close(with(ResizeMode::cubic, 1), {0.875}, 1e-14);
  expect_close(with(ResizeMode::cubic, 9),
               {0.9477611940298508, 1.4864359214218896, 2.80859375, 3.984375, 2.90625, 5.7197265625, 6.5576171875, 4.995150339476236,
                5.906803355079218},
               1e-14);
}

TEST(ResizeOptions, ScalesPlaceTheElements) {
  // Element o lies at (o + 0.5) / 1.6 - 0.5 although 4 / 3 is not 1.6.
  const Array x = array_of(f64, {3}, {0, 8, 16});
  expect_close(run({x}, [](const Values& v) { return resize(v[0], {4}, {.mode = ResizeMode::linear, .scales = {1.6}}); }),
               {0, 3.5, 8.5, 13.5}, 1e-14);
}

TEST(ResizeOptions, LinesOfEqualSizesStayWhateverTheScaleIsAsInPyTorch) {
  const Array x = array_of(f64, {3}, {0, 8, 16});
  const auto by = [&](ResizeMode mode, bool antialias) {
    return run({x}, [&](const Values& v) { return resize(v[0], {3}, {.mode = mode, .antialias = antialias, .scales = {1.3}}); });
  };
  EXPECT_EQ(by(ResizeMode::linear, false), (Doubles{0, 8, 16}));
  EXPECT_EQ(by(ResizeMode::linear, true), (Doubles{0, 8, 16}));
  EXPECT_EQ(by(ResizeMode::cubic, true), (Doubles{0, 8, 16}));
  EXPECT_NE(by(ResizeMode::cubic, false), (Doubles{0, 8, 16}));
}

// The numbers are PyTorch's interpolate with scale_factor.
TEST(ResizeOptions, ScalesChooseTheNearestElements) {
  const Array x = array_of(f32, {5}, {0, 1, 2, 3, 4});
  const auto by = [&](ResizeMode mode, double scale, std::int64_t size) {
    return run({x}, [&](const Values& v) { return resize(v[0], {size}, {.mode = mode, .scales = {scale}}); });
  };
  EXPECT_EQ(by(ResizeMode::nearest, 1.3, 6), (Doubles{0, 0, 1, 2, 3, 3}));
  EXPECT_EQ(by(ResizeMode::nearest_exact, 1.3, 6), (Doubles{0, 1, 1, 2, 3, 4}));
  EXPECT_EQ(by(ResizeMode::nearest, 0.7, 3), (Doubles{0, 1, 2}));
  EXPECT_EQ(by(ResizeMode::nearest_exact, 0.7, 3), (Doubles{0, 2, 3}));
  EXPECT_EQ(by(ResizeMode::nearest, 1.1, 5), (Doubles{0, 0, 1, 2, 3}));  // no size changes
}

TEST(ResizeOptions, Errors) {
  Graph graph;
  const Value x = graph.input("x", {4}, f32);
  EXPECT_EQ(error_of([&] { resize(x, {2}, {.antialias = true}); }),
            "rlx.resize: antialias or exclude_outside with mode 'nearest' (allowed: linear, cubic, lanczos3, lanczos5)");
  EXPECT_EQ(error_of([&] { resize(x, {2}, {.mode = ResizeMode::linear, .align_corners = true, .scales = {0.5}}); }),
            "rlx.resize: align_corners with scales (allowed: one of them)");
  EXPECT_EQ(error_of([&] { resize(x, {2}, {.mode = ResizeMode::linear, .scales = {1, 2}}); }),
            "rlx.resize: 2 scales for 1 sizes (allowed: none, or one for each)");
  EXPECT_EQ(error_of([&] { resize(x, {2}, {.mode = ResizeMode::linear, .scales = {0}}); }),
            "rlx.resize: size 2 with scale 0 of 4 (allowed: 0, their product rounded down)");
}

TEST(PadMode, LinearRampReachesItsEndValue) {
  const Array x = array_of(f64, {2}, {6, 2});
  expect_close(run({x}, [](const Values& v) { return pad_mode(v[0], {3}, {2}, PadMode::linear_ramp, 12); }), {12, 10, 8, 6, 2, 7, 12},
               1e-14);
  Graph graph;
  const Value n = graph.input("n", {2}, i32);
  EXPECT_EQ(error_of([&] { pad_mode(n, {1}, {0}, PadMode::linear_ramp); }), "rlx.pad_mode: linear_ramp of i32[1] (allowed: floats)");
}

}  // namespace lookup_test
}  // namespace rlx::test
