// Rearrangements, einsum, selection and resize against hand-computed numbers, and against plain loops that share no code with the ops.
#include "ops/evaluated.h"
#include "rlx/transform.h"

namespace rlx {
namespace {

using namespace test;

// Arrangement.

TEST(Arrangement, RollMovesElementsRoundTheEnd) {
  const Array x = counting(i32, {2, 3});
  EXPECT_EQ(values_of(computed({x}, [](const Values& v) { return roll(v[0], {1}, {1}); })), (Doubles{2, 0, 1, 5, 3, 4}));
  EXPECT_EQ(values_of(computed({x}, [](const Values& v) { return roll(v[0], {-4, 3}, {1, 0}); })), (Doubles{4, 5, 3, 1, 2, 0}));
}

TEST(Arrangement, RollWorksOnASymbolicAxis) {
  Graph graph("test");
  Value x = graph.input("x", {Dim::symbol("N", 9)}, i32);
  graph.output("back", roll(x, {1}, {0}));
  graph.output("forth", roll(x, {-1}, {0}));
  const auto results = evaluate(graph, {{"x", counting(i32, {4})}});
  EXPECT_EQ(values_of(results[0]), (Doubles{3, 0, 1, 2}));
  EXPECT_EQ(values_of(results[1]), (Doubles{1, 2, 3, 0}));
}

TEST(Arrangement, RollGoesRoundASymbolicAxisAsOftenAsItMust) {
  Graph graph("test");
  Value x = graph.input("x", {Dim::symbol("N", 9), 2}, f64);
  graph.output("back", roll(x, {7}, {0}));
  graph.output("forth", roll(x, {-5}, {0}));
  Value weights = cast(iota(x, x.shape(), i32, 0), f64);
  graph.output("slope", grad(sum_all(roll(x, {7}, {0}) * weights), {x})[0]);
  const auto four = evaluate(graph, {{"x", counting(f64, {4, 2})}}), one = evaluate(graph, {{"x", counting(f64, {1, 2})}});
  const std::vector<Doubles> of_four{{2, 3, 4, 5, 6, 7, 0, 1}, {2, 3, 4, 5, 6, 7, 0, 1}, {3, 3, 0, 0, 1, 1, 2, 2}};
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(values_of(four[i]), of_four[i]) << i;
  EXPECT_EQ(values_of(one[0]), (Doubles{0, 1}));
  EXPECT_EQ(values_of(one[1]), (Doubles{0, 1}));
}

TEST(Arrangement, RepeatAndTileAgreeWithNumpy) {
  const Array x = counting(i32, {2, 2});
  EXPECT_EQ(values_of(computed({x}, [](const Values& v) { return repeat(v[0], 2, 1); })), (Doubles{0, 0, 1, 1, 2, 2, 3, 3}));
  EXPECT_EQ(values_of(computed({x}, [](const Values& v) { return tile(v[0], {2}); })), (Doubles{0, 1, 0, 1, 2, 3, 2, 3}));
  const Array three = computed({x}, [](const Values& v) { return tile(v[0], {2, 1, 1}); });
  EXPECT_EQ(three.shape(), (Shape{2, 2, 2}));
  EXPECT_EQ(values_of(three), (Doubles{0, 1, 2, 3, 0, 1, 2, 3}));
}

TEST(Arrangement, StackAndSplitUndoEachOther) {
  const Array x = counting(f32, {3, 4});
  const Array y = computed({x}, [](const Values& v) {
    Values columns = split_evenly(v[0], 4, 1);
    for (Value& column : columns) column = squeeze(column, {1});
    return stack(columns, -1);
  });
  EXPECT_EQ(y, x);
  const auto parts = run_all({x}, [](const Values& v) { return split(v[0], {1, 2}, 0); });
  EXPECT_EQ(values_of(parts[1]), (Doubles{4, 5, 6, 7, 8, 9, 10, 11}));
}

TEST(Arrangement, ShapesFollowTheNamedAxes) {
  Graph graph("test");
  Value x = graph.input("x", {2, 1, 3}, f32);
  EXPECT_EQ(squeeze(x).shape(), (Dims{2, 3}));
  EXPECT_EQ(expand_dims(x, {0, -1}).shape(), (Dims{1, 2, 1, 3, 1}));
  EXPECT_EQ(flatten(x, 1).shape(), (Dims{2, 3}));
  EXPECT_EQ(swap_axes(x, 0, -1).shape(), (Dims{3, 1, 2}));
  EXPECT_EQ(error_of([&] { squeeze(x, {0}); }), "rlx.squeeze: axis 0 of f32[2,1,3] has size 2 (allowed: 1)");
  EXPECT_EQ(error_of([&] { split(x, {1, 1}, 2); }), "rlx.split: parts [1,1] add up to 2, axis 2 of f32[2,1,3] has 3");
  EXPECT_EQ(error_of([&] { split_evenly(x, 2, 2); }), "rlx.split_evenly: axis 2 of f32[2,1,3] does not divide into 2 parts");
}

TEST(Arrangement, PadModesAgreeWithNumpy) {
  const Array x = counting(i32, {4});
  auto padded = [&](PadMode mode) { return values_of(computed({x}, [&](const Values& v) { return pad_mode(v[0], {2}, {3}, mode, 9); })); };
  EXPECT_EQ(padded(PadMode::constant), (Doubles{9, 9, 0, 1, 2, 3, 9, 9, 9}));
  EXPECT_EQ(padded(PadMode::reflect), (Doubles{2, 1, 0, 1, 2, 3, 2, 1, 0}));
  EXPECT_EQ(padded(PadMode::symmetric), (Doubles{1, 0, 0, 1, 2, 3, 3, 2, 1}));
  EXPECT_EQ(padded(PadMode::edge), (Doubles{0, 0, 0, 1, 2, 3, 3, 3, 3}));
  EXPECT_EQ(padded(PadMode::wrap), (Doubles{2, 3, 0, 1, 2, 3, 0, 1, 2}));
}

TEST(Arrangement, NegativePaddingCropsInEveryMode) {
  const Array x = counting(i32, {5});
  for (PadMode mode : {PadMode::constant, PadMode::reflect, PadMode::symmetric, PadMode::edge, PadMode::wrap})
    EXPECT_EQ(values_of(computed({x}, [&](const Values& v) { return pad_mode(v[0], {-1}, {-2}, mode); })), (Doubles{1, 2}));
  EXPECT_EQ(values_of(computed({x}, [](const Values& v) { return pad_mode(v[0], {-2}, {1}, PadMode::reflect); })), (Doubles{2, 3, 4, 3}));
  Graph graph("test");
  Value small = graph.input("x", {3}, f32);
  EXPECT_EQ(error_of([&] { pad_mode(small, {3}, {0}, PadMode::reflect); }),
            "rlx.pad_mode: reflect of 3 on axis 0 of size 3 (allowed: <= 2)");
}

TEST(Arrangement, TrianglesKeepOneSideOfADiagonal) {
  const Array x = array_of(f32, {2, 3}, {1, 2, 3, 4, 5, NAN});
  EXPECT_EQ(values_of(computed({x}, [](const Values& v) { return tril(v[0]); })), (Doubles{1, 0, 0, 4, 5, 0}));
  EXPECT_EQ(values_of(computed({x}, [](const Values& v) { return tril(v[0], -1); })), (Doubles{0, 0, 0, 4, 0, 0}));
  const Doubles upper = values_of(computed({x}, [](const Values& v) { return triu(v[0], 1); }));
  EXPECT_EQ(Doubles(upper.begin(), upper.end() - 1), (Doubles{0, 2, 3, 0, 0}));
  EXPECT_TRUE(std::isnan(upper.back()));
}

TEST(Arrangement, DiagonalAndDiagAreInverse) {
  const Array square = counting(f32, {3, 3}), batch = counting(f32, {2, 3, 2});
  EXPECT_EQ(values_of(computed({square}, [](const Values& v) { return diagonal(v[0]); })), (Doubles{0, 4, 8}));
  EXPECT_EQ(values_of(computed({batch}, [](const Values& v) { return diagonal(v[0], 2, 0); })), (Doubles{0, 7, 2, 9, 4, 11}));
  EXPECT_EQ(values_of(computed({counting(f32, {2, 2})}, [](const Values& v) { return diag(v[0]); })), (Doubles{0, 0, 0, 1, 2, 0, 0, 3}));
  const Array row = counting(f32, {2, 5});
  EXPECT_EQ(computed({row}, [](const Values& v) { return diagonal(diag(v[0]), 1, 2); }), row);
}

TEST(Arrangement, DiagonalWorksOnSymbolicSizes) {
  Graph graph("test");
  const Dim n = Dim::symbol("N", 9);
  Value x = graph.input("x", {n, n}, i32);
  graph.output("d", diagonal(x));
  graph.output("m", diag(diagonal(x)));
  const auto results = evaluate(graph, {{"x", counting(i32, {3, 3})}});
  EXPECT_EQ(values_of(results[0]), (Doubles{0, 4, 8}));
  EXPECT_EQ(values_of(results[1]), (Doubles{0, 0, 0, 0, 4, 0, 0, 0, 8}));
}

// `einsum`

TEST(Einsum, ContractsLikeNestedLoops) {
  const Array a = uniform(f64, {2, 3, 4}, -1, 1, 1), b = uniform(f64, {4, 2, 5}, -1, 1, 2);
  Doubles wanted;
  for (int c = 0; c < 5; ++c)
    for (int i = 0; i < 2; ++i)
      for (int j = 0; j < 3; ++j) {
        double total = 0;
        for (int k = 0; k < 4; ++k) total += a.get_double((i * 3 + j) * 4 + k) * b.get_double((k * 2 + i) * 5 + c);
        wanted.push_back(total);
      }
  // 1e-14: four products of numbers below 1 in f64.
  expect_near(computed({a, b}, [](const Values& v) { return einsum("ijk,kic->cij", {v[0], v[1]}); }), wanted, 1e-14);
}

TEST(Einsum, DiagonalsTracesAndSumsOfOneOperand) {
  const Array x = counting(f32, {3, 3});
  auto one = [&](std::string_view equation) { return values_of(computed({x}, [&](const Values& v) { return einsum(equation, {v[0]}); })); };
  EXPECT_EQ(one("ii->i"), (Doubles{0, 4, 8}));
  EXPECT_EQ(one("ii"), (Doubles{12}));
  EXPECT_EQ(one("ij->j"), (Doubles{9, 12, 15}));
  EXPECT_EQ(one("ba"), (Doubles{0, 3, 6, 1, 4, 7, 2, 5, 8}));
  EXPECT_EQ(one("ij->"), (Doubles{36}));
}

TEST(Einsum, EllipsisBroadcastsFromTheRight) {
  const Array a = uniform(f64, {2, 1, 3, 4}, -1, 1, 3), b = uniform(f64, {5, 4, 2}, -1, 1, 4);
  const Array y = computed({a, b}, [](const Values& v) { return einsum("...ij,...jk->...ik", {v[0], v[1]}); });
  EXPECT_EQ(y.shape(), (Shape{2, 5, 3, 2}));
  const Array same = computed({a, b}, [](const Values& v) { return matmul(v[0], v[1]); });
  expect_near(y, values_of(same), 1e-14);  // the same four products
  EXPECT_EQ(computed({a}, [](const Values& v) { return einsum("...ab->...ba", {v[0]}); }).shape(), (Shape{2, 1, 4, 3}));
}

TEST(Einsum, ThreeOperandsAndLonelyLabels) {
  const Array a = uniform(f64, {2, 3}, -1, 1, 5), b = uniform(f64, {3, 4}, -1, 1, 6), c = uniform(f64, {4, 2, 7}, -1, 1, 7);
  Doubles wanted(2, 0);
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 3; ++j)
      for (int k = 0; k < 4; ++k)
        for (int z = 0; z < 7; ++z)
          wanted[static_cast<std::size_t>(i)] += a.get_double(i * 3 + j) * b.get_double(j * 4 + k) * c.get_double((k * 2 + i) * 7 + z);
  expect_near(computed({a, b, c}, [](const Values& v) { return einsum("ij, jk, kiz -> i", {v[0], v[1], v[2]}); }), wanted,
              1e-13);  // 84 products
}

TEST(Einsum, ErrorsNameTheLabel) {
  Graph graph("test");
  Value a = graph.input("a", {2, 3}, f32), b = graph.input("b", {4, 5}, f32);
  EXPECT_EQ(error_of([&] { einsum("ij,jk->ik", {a, b}); }),
            "rlx.einsum: label 'j' of 'ij,jk->ik' has size 4 in operand 1 (f32[4,5]) and 3 before");
  EXPECT_EQ(error_of([&] { einsum("ij->iz", {a}); }), "rlx.einsum: output label 'z' of 'ij->iz' is in no operand");
  EXPECT_EQ(error_of([&] { einsum("ij->ii", {a}); }), "rlx.einsum: output label 'i' of 'ij->ii' is named twice");
  EXPECT_EQ(error_of([&] { einsum("ijk", {a}); }), "rlx.einsum: 'ijk' in 'ijk' names 3 axes, operand 0 is f32[2,3]");
  EXPECT_EQ(error_of([&] { einsum("ii", {a}); }), "rlx.einsum: label 'i' of 'ii' has sizes 2 and 3 in f32[2,3]");
  EXPECT_EQ(error_of([&] { einsum("i1", {a}); }), "rlx.einsum: '1' in 'i1' is no label (allowed: letters, and ... once for each operand)");
  EXPECT_EQ(error_of([&] { einsum("ij,ij", {a}); }), "rlx.einsum: 'ij,ij' names 2 operands, given 1");
}

// Selection.

TEST(Selection, ClampLimitsAndPassesTheDerivativeAtTheEnds) {
  const Array x = array_of(f32, {5}, {-3, -1, 0.5, 2, 7}), ones = array_of(f32, {5}, {1, 1, 1, 1, 1});
  EXPECT_EQ(values_of(computed({x}, [](const Values& v) { return clamp(v[0], -1, 2); })), (Doubles{-1, -1, 0.5, 2, 2}));
  const Array low = array_of(f32, {5}, Doubles(5, -1)), high = array_of(f32, {5}, Doubles(5, 2));
  EXPECT_EQ(values_of(tangent(find_op("clamp"), {}, {x, low, high}, {ones, Array(), Array()})), (Doubles{0, 1, 1, 1, 0}));
  EXPECT_EQ(values_of(tangent(find_op("clamp"), {}, {x, low, high}, {Array(), ones, Array()})), (Doubles{1, 0, 0, 0, 0}));
}

TEST(Selection, NanToNumReplacesWhatIsNotFinite) {
  const Array x = array_of(f16, {4}, {NAN, INFINITY, -INFINITY, 1.5});
  EXPECT_EQ(values_of(computed({x}, [](const Values& v) { return nan_to_num(v[0]); })), (Doubles{0, 65504, -65504, 1.5}));
  EXPECT_EQ(values_of(computed({x}, [](const Values& v) { return nan_to_num(v[0], 7, 8, 9); })), (Doubles{7, 8, 9, 1.5}));
}

TEST(Selection, MaskedFillWritesWhereTheMaskHolds) {
  const Array x = counting(f32, {2, 2}), mask = array_of(boolean, {2}, {0, 1});
  EXPECT_EQ(values_of(computed({x, mask}, [](const Values& v) { return masked_fill(v[0], v[1], -5); })), (Doubles{0, -5, 2, -5}));
}

// Resize.

TEST(Resize, NearestTakesTheFlooredElement) {
  for (auto [in, out] : {std::pair{3, 8}, {8, 3}, {5, 5}, {4, 8}, {6, 4}, {1, 3}, {7, 1}}) {
    Doubles floored, exact;
    for (int o = 0; o < out; ++o) {
      floored.push_back(std::floor(static_cast<double>(o) * in / out));
      exact.push_back(std::floor((2.0 * o + 1) * in / (2.0 * out)));
    }
    const Array x = counting(u8, {1, 1, in});
    const Dims size{out};
    EXPECT_EQ(values_of(computed({x}, [&](const Values& v) { return resize(v[0], size, ResizeMode::nearest); })), floored)
        << in << " to " << out;
    EXPECT_EQ(values_of(computed({x}, [&](const Values& v) { return resize(v[0], size, ResizeMode::nearest_exact); })), exact)
        << in << " to " << out;
  }
}

TEST(Resize, NearestKeepsNonFiniteElementsWhereTheyAre) {
  const Array x = array_of(f32, {1, 1, 1, 2}, {INFINITY, 1});
  EXPECT_EQ(values_of(computed({x}, [](const Values& v) { return resize_nearest_2x(v[0]); })),
            (Doubles{INFINITY, INFINITY, 1, 1, INFINITY, INFINITY, 1, 1}));
}

TEST(Resize, NearestWithAlignedCornersIsThatOfOnnx) {
  struct Case {
    std::int64_t in, out;
    Doubles elements;
  };
  // onnxruntime 1.31: Resize of 0, 1, 2, ... with nearest, align_corners and round_prefer_floor. Ties such as 0.5 go to the lower element.
  const std::vector<Case> cases{{3, 7, {0, 0, 1, 1, 1, 2, 2}},
                                {5, 3, {0, 2, 4}},
                                {5, 8, {0, 1, 1, 2, 2, 3, 3, 4}},
                                {4, 9, {0, 0, 1, 1, 1, 2, 2, 3, 3}},
                                {3, 2, {0, 2}},
                                {2, 4, {0, 0, 1, 1}},
                                {1, 3, {0, 0, 0}},
                                {4, 1, {0}},
                                {4, 4, {0, 1, 2, 3}}};
  for (const Case& c : cases) {
    const Array x = counting(u8, {1, 1, c.in});
    EXPECT_EQ(values_of(computed({x}, [&](const Values& v) { return resize(v[0], {c.out}, ResizeMode::nearest, true); })), c.elements)
        << c.in << " to " << c.out;
  }
  Graph graph("test");
  const Value x = graph.input("x", {Dim::symbol("B", 8)}, f32);
  EXPECT_THROW(resize(x, {x.dim(0) * 2}, ResizeMode::nearest, true), Error);  // where an element goes depends on the size
}

// One line interpolated by the definition: neighbours outside count for the border element.
Doubles interpolate(const Doubles& line, int out, bool cubic, bool align_corners) {
  const int in = static_cast<int>(line.size());
  auto element = [&](int i) { return line[static_cast<std::size_t>(std::min(std::max(i, 0), in - 1))]; };
  // Keys' kernel as a function of the distance, a = -0.75.
  auto kernel = [&](double d) {
    d = std::fabs(d);
    if (!cubic) return std::max(0.0, 1 - d);
    if (d <= 1) return 1.25 * d * d * d - 2.25 * d * d + 1;
    return d < 2 ? -0.75 * d * d * d + 3.75 * d * d - 6 * d + 3 : 0.0;
  };
  Doubles result;
  for (int o = 0; o < out; ++o) {
    const double at = !align_corners ? (o + 0.5) * in / out - 0.5 : out > 1 ? static_cast<double>(o) * (in - 1) / (out - 1) : 0.0;
    double total = 0;
    for (int i = -3; i < in + 3; ++i) total += kernel(at - i) * element(i);
    result.push_back(total);
  }
  return result;
}

TEST(Resize, LinearAndCubicAgreeWithTheKernelDefinition) {
  const Array x = uniform(f64, {2, 5}, -1, 1, 8);
  for (ResizeMode mode : {ResizeMode::linear, ResizeMode::cubic})
    for (bool align : {false, true})
      for (int out : {1, 3, 8, 10}) {
        const Array y = computed({x}, [&](const Values& v) { return resize(v[0], {out}, mode, align); });
        Doubles wanted;
        for (int r = 0; r < 2; ++r) {
          Doubles line;
          for (int i = 0; i < 5; ++i) line.push_back(x.get_double(r * 5 + i));
          const Doubles row = interpolate(line, out, mode == ResizeMode::cubic, align);
          wanted.insert(wanted.end(), row.begin(), row.end());
        }
        expect_near(y, wanted, 1e-14);  // four products in f64
      }
}

TEST(Resize, BilinearCornersOfATwoByTwoImage) {
  const Array x = array_of(f32, {1, 1, 2, 2}, {1, 2, 3, 4});
  const Array aligned = computed({x}, [](const Values& v) { return resize(v[0], {3, 3}, ResizeMode::linear, true); });
  expect_near(aligned, {1, 1.5, 2, 2, 2.5, 3, 3, 3.5, 4}, 1e-6);
  // PyTorch: interpolate(x, scale_factor=2, mode='bilinear', align_corners=False), first row.
  const Doubles half = values_of(computed({x}, [](const Values& v) { return resize(v[0], {4, 4}, ResizeMode::linear); }));
  EXPECT_EQ(Doubles(half.begin(), half.begin() + 4), (Doubles{1, 1.25, 1.75, 2}));
}

}  // namespace
}  // namespace rlx
