// Ops that read or write at computed places, and the loss over alignments: against enumeration, plain loops and numbers by hand.
#include <functional>
#include <limits>

#include "ops/evaluated.h"
#include "rlx/transform.h"

namespace rlx {
namespace computed_places_test {

using namespace test;

constexpr double infinity = std::numeric_limits<double>::infinity();

Array integers(Shape shape, const Doubles& values) { return array_of(i32, std::move(shape), values); }

// `ctc_loss`

/// What a path of classes says: repeats joined, then blanks removed.
std::vector<int> collapsed(const std::vector<int>& path, int blank) {
  std::vector<int> labels;
  int last = -1;
  for (int c : path) {
    if (c != last && c != blank) labels.push_back(c);
    last = c;
  }
  return labels;
}

/// -log of the sum over all paths of `frames` classes that say `target`.
double by_enumeration(const Array& x, std::int64_t example, std::int64_t frames, const std::vector<int>& target, int blank) {
  const std::int64_t examples = x.shape()[1], classes = x.shape()[2];
  double total = 0;
  std::vector<int> path;
  const std::function<void(double)> extend = [&](double logarithm) {
    const auto t = static_cast<std::int64_t>(path.size());
    if (t == frames) {
      if (collapsed(path, blank) == target) total += std::exp(logarithm);
      return;
    }
    for (std::int64_t c = 0; c < classes; ++c) {
      path.push_back(static_cast<int>(c));
      extend(logarithm + x.get_double((t * examples + example) * classes + c));
      path.pop_back();
    }
  };
  extend(0);
  return -std::log(total);
}

TEST(CtcLoss, SumsOverEveryAlignment) {
  const Array x = uniform(f64, {5, 4, 3}, -3, 0, 1), targets = integers({4, 3}, {1, 1, 2, 2, 1, 0, 1, 7, -1, 2, 2, 2});
  const Array frames = integers({4}, {5, 4, 3, 0}), lengths = integers({4}, {3, 2, 1, 0});
  const Array loss =
      computed({x, targets, frames, lengths}, [](const Values& v) { return ctc_loss(v[0], v[1], v[2], v[3], 0, Reduction::none); });
  const std::vector<std::vector<int>> wanted{{1, 1, 2}, {2, 1}, {1}, {}};
  for (std::int64_t n = 0; n < 4; ++n)  // some hundred f64 terms
    EXPECT_NEAR(loss.get_double(n), by_enumeration(x, n, frames.get_int(n), wanted[static_cast<std::size_t>(n)], 0), 1e-12) << n;
}

TEST(CtcLoss, ABlankThatIsNotTheFirstClass) {
  const Array x = uniform(f64, {4, 1, 3}, -3, 0, 2);
  const Array loss = computed({x, integers({1, 2}, {0, 0}), integers({1}, {4}), integers({1}, {2})},
                              [](const Values& v) { return ctc_loss(v[0], v[1], v[2], v[3], 2, Reduction::sum); });
  EXPECT_NEAR(loss.get_double(0), by_enumeration(x, 0, 4, {0, 0}, 2), 1e-12);
}

TEST(CtcLoss, WhatCannotBeAlignedCostsInfinityWithoutAGradient) {
  const std::vector<Array> operands{uniform(f32, {2, 1, 3}, -3, 0, 3), integers({1, 2}, {1, 1}), integers({1}, {2}), integers({1}, {2})};
  for (bool zero_infinity : {false, true}) {
    const auto results = run_all(operands, [&](const Values& v) {
      const Value loss = ctc_loss(v[0], v[1], v[2], v[3], 0, Reduction::sum, zero_infinity);
      return Values{loss, grad(loss, {v[0]})[0]};
    });
    EXPECT_EQ(values_of(results[0]), Doubles{zero_infinity ? 0 : infinity});
    EXPECT_EQ(values_of(results[1]), Doubles(6, 0));
  }
}

TEST(CtcLoss, ProbabilitiesOfZeroLeaveTheOtherAlignments) {
  Array x(f64, {2, 1, 2});
  for (int i = 0; i < 4; ++i) x.set_double(i, i == 0 ? -infinity : std::log(0.5));  // the first frame is no blank
  const auto results = run_all({x, integers({1, 1}, {1}), integers({1}, {2}), integers({1}, {1})}, [](const Values& v) {
    const Value loss = ctc_loss(v[0], v[1], v[2], v[3], 0, Reduction::sum);
    return Values{loss, grad(loss, {v[0]})[0]};
  });
  EXPECT_NEAR(results[0].get_double(0), -std::log(0.5), 1e-15);  // 1 1 or 1 0, each a quarter
  expect_near(results[1], {0, -1, -0.5, -0.5}, 1e-15);
}

// `grid_sample` and `affine_grid`

TEST(GridSample, TheIdentityGridGivesTheTensorBack) {
  for (const Shape& spatial : {Shape{5}, Shape{4, 3}, Shape{2, 1, 3}}) {
    Shape shape{2, 3};
    shape.insert(shape.end(), spatial.begin(), spatial.end());
    const auto rank = static_cast<std::int64_t>(spatial.size());
    Array theta(f64, {2, rank, rank + 1});
    for (std::int64_t i = 0; i < 2 * rank * (rank + 1); ++i) theta.set_double(i, i / (rank + 1) % rank == i % (rank + 1));
    const Array x = uniform(f64, shape, -1, 1, 4);
    for (bool align_corners : {false, true})
      for (GridMode mode : {GridMode::nearest, GridMode::linear, GridMode::cubic}) {
        const Array y = computed({x, theta}, [&](const Values& v) {
          return grid_sample(v[0], affine_grid(v[1], Dims(spatial.begin(), spatial.end()), align_corners), mode, GridPadding::border,
                             align_corners);
        });
        expect_near(y, values_of(x), 1e-14);  // positions are off by a few roundings
      }
  }
}

TEST(GridSample, ReadsWhatThePaddingPutsOutside) {
  const Array x = array_of(f64, {1, 1, 3}, {1, 2, 4}), grid = array_of(f64, {1, 4, 1}, {-2, -1, 1, 2});
  auto read = [&](GridPadding padding, bool align) {
    return values_of(computed({x, grid}, [&](const Values& v) { return grid_sample(v[0], v[1], GridMode::linear, padding, align); }));
  };
  EXPECT_EQ(read(GridPadding::zeros, false), (Doubles{0, 0.5, 2, 0}));
  EXPECT_EQ(read(GridPadding::border, false), (Doubles{1, 1, 4, 4}));
  EXPECT_EQ(read(GridPadding::reflection, true), (Doubles{2, 1, 4, 2}));
  EXPECT_EQ(read(GridPadding::reflection, false), (Doubles{2, 1, 4, 2}));  // -2 is position -2, mirrored at -0.5: position 1
}

TEST(GridSample, SaysWhichShapesFit) {
  Graph graph("test");
  const Value x = graph.input("x", {2, 3, 4, 5}, f32), grid = graph.input("grid", {2, 6, 2}, f32);
  EXPECT_EQ(
      error_of([&] { grid_sample(x, grid); }),
      "rlx.grid_sample: x f32[2,3,4,5], grid f32[2,6,2] (allowed: x [N, C, spatial...], grid [N, out..., r] of floats, one number for "
      "each of the r spatial axes)");
  EXPECT_EQ(error_of([&] { affine_grid(grid, {3, 4}); }), "rlx.affine_grid: theta f32[2,6,2] for sizes [3,4] (allowed: [N, 2, 3])");
}

// Adaptive and p-norm pooling.

TEST(AdaptivePool, EveryBinAgreesWithALoop) {
  for (std::int64_t in : {1, 4, 6, 7})
    for (std::int64_t out : {1, 2, 3, 4, 6, 9}) {
      const Array x = uniform(f64, {2, in}, -1, 1, static_cast<unsigned>(in));
      const auto seen =
          run_all({x}, [&](const Values& v) { return Values{adaptive_avg_pool(v[0], {out}), adaptive_max_pool(v[0], {out})}; });
      Doubles means, largest;
      for (std::int64_t row = 0; row < 2; ++row)
        for (std::int64_t o = 0; o < out; ++o) {
          double total = 0, greatest = -infinity;
          const std::int64_t begin = o * in / out, end = ((o + 1) * in + out - 1) / out;
          for (std::int64_t i = begin; i < end; ++i) {
            total += x.get_double(row * in + i);
            greatest = std::max(greatest, x.get_double(row * in + i));
          }
          means.push_back(total / static_cast<double>(end - begin));
          largest.push_back(greatest);
        }
      expect_near(seen[0], means, 1e-15);
      EXPECT_EQ(values_of(seen[1]), largest) << in << " to " << out;
    }
}

TEST(AdaptivePool, TheFirstOfTiesTakesTheGradient) {
  const Array x = array_of(f32, {3, 4}, {0, 0, 5, 5, 0, 5, 5, 0, 5, 5, 0, 0});
  const Array slope = computed({x}, [](const Values& v) { return grad(sum_all(adaptive_max_pool(v[0], {1, 3})), {v[0]})[0]; });
  EXPECT_EQ(values_of(slope), (Doubles{0, 0, 2, 0, 0, 1, 0, 0, 0, 0, 0, 0}));  // columns 0-1, 1-2, 2-3; row-major order in each
}

TEST(AdaptivePool, OneBinNeedsNoStaticSize) {
  Graph graph("test");
  const Value x = graph.input("x", {2, Dim::symbol("N", 9)}, f32);
  graph.output("mean", adaptive_avg_pool(x, {1}));
  graph.output("max", adaptive_max_pool(x, {1}));
  const auto results = evaluate(graph, {{"x", counting(f32, {2, 3})}});
  EXPECT_EQ(values_of(results[0]), (Doubles{1, 4}));
  EXPECT_EQ(values_of(results[1]), (Doubles{2, 5}));
  EXPECT_EQ(error_of([&] { adaptive_avg_pool(x, {2}); }),
            "rlx.adaptive_avg_pool: size N of f32[2,N] (allowed: static sizes up to 1073741824, or a whole divisor of the axis)");
  EXPECT_EQ(error_of([&] { adaptive_max_pool(x, {0}); }), "rlx.adaptive_max_pool: f32[2,N] to [0] (allowed: sizes >= 1)");
}

TEST(LpPool, TakesTheNormOfEachWindow) {
  const Array x = array_of(f64, {5}, {3, -4, 0, 0, 2});
  const auto pooled = [&](double p, bool ceil_mode) {
    return values_of(computed({x}, [&](const Values& v) { return lp_pool(v[0], p, {2}, {}, ceil_mode); }));
  };
  EXPECT_EQ(pooled(2, false), (Doubles{5, 0}));
  EXPECT_EQ(pooled(1, true), (Doubles{7, 0, 2}));
  EXPECT_EQ(pooled(infinity, false), (Doubles{4, 0}));
}

// `scatter_reduce` and embeddings

TEST(ScatterReduce, IntegersWithAndWithoutTheOldElement) {
  const Array x = integers({4}, {10, 20, 30, 40}), places = integers({5}, {1, 1, 3, -1, 4}), updates = integers({5}, {-2, 5, 50, 7, 7});
  const auto reduced = [&](ScatterReduceKind kind, bool include_self) {
    return values_of(
        computed({x, places, updates}, [&](const Values& v) { return scatter_reduce(v[0], v[1], v[2], 0, kind, include_self); }));
  };
  EXPECT_EQ(reduced(ScatterReduceKind::sum, true), (Doubles{10, 23, 30, 90}));
  EXPECT_EQ(reduced(ScatterReduceKind::sum, false), (Doubles{10, 3, 30, 50}));
  EXPECT_EQ(reduced(ScatterReduceKind::prod, false), (Doubles{10, -10, 30, 50}));
  EXPECT_EQ(reduced(ScatterReduceKind::max, false), (Doubles{10, 5, 30, 50}));
  EXPECT_EQ(reduced(ScatterReduceKind::min, false), (Doubles{10, -2, 30, 50}));
  EXPECT_EQ(reduced(ScatterReduceKind::min, true), (Doubles{10, -2, 30, 40}));
}

TEST(ScatterReduce, ProductsOfZerosHaveDerivatives) {
  const Array x = array_of(f64, {2}, {3, 0}), updates = array_of(f64, {4}, {0, 5, 0, 7}), places = integers({4}, {0, 0, 1, 1});
  const auto slopes = run_all({x, places, updates}, [](const Values& v) {
    return grad(sum_all(scatter_reduce(v[0], v[1], v[2], 0, ScatterReduceKind::prod)), {v[0], v[2]});
  });
  EXPECT_EQ(values_of(slopes[0]), (Doubles{0, 0}));
  EXPECT_EQ(values_of(slopes[1]), (Doubles{15, 0, 0, 0}));
}

TEST(ScatterReduce, TiesShareTheGradient) {
  const Array x = array_of(f64, {1}, {4}), updates = array_of(f64, {3}, {4, 1, 4}), places = integers({3}, {0, 0, 0});
  const auto slopes = run_all({x, places, updates}, [](const Values& v) {
    return grad(sum_all(scatter_reduce(v[0], v[1], v[2], 0, ScatterReduceKind::max)), {v[0], v[2]});
  });
  expect_near(slopes[0], {1 / 3.0}, 1e-15);
  expect_near(slopes[1], {1 / 3.0, 0, 1 / 3.0}, 1e-15);
}

TEST(Embedding, BagsTakeWeightsAndMayBeEmpty) {
  const Array table = array_of(f32, {3, 2}, {1, 2, 3, 4, 5, 6}), ids = integers({4}, {0, 2, 1, 1}), offsets = integers({3}, {0, 2, 2});
  const Array weights = array_of(f32, {4}, {10, 1, 2, 0.5});
  const auto bags = run_all({table, ids, offsets, weights}, [](const Values& v) {
    return Values{embedding_bag(v[0], v[1], v[2], BagMode::sum, v[3]), embedding_bag(v[0], v[1], v[2]),
                  embedding_bag(v[0], v[1], v[2], BagMode::max)};
  });
  EXPECT_EQ(values_of(bags[0]), (Doubles{15, 26, 0, 0, 7.5, 10}));
  EXPECT_EQ(values_of(bags[1]), (Doubles{3, 4, 0, 0, 3, 4}));
  EXPECT_EQ(values_of(bags[2]), (Doubles{5, 6, 0, 0, 3, 4}));
}

TEST(Embedding, SaysWhatItDoesNotTake) {
  Graph graph("test");
  const Value table = graph.input("table", {3, 2}, f32), ids = graph.input("ids", {4}, i32);
  EXPECT_EQ(error_of([&] { embedding_bag(table, ids, ids, BagMode::max, graph.input("w", {4}, f32)); }),
            "rlx.embedding_bag: weights f32[4] with mode 'max' for ids i32[4] (allowed: one for each id, in mode 'sum')");
  EXPECT_EQ(error_of([&] { embedding(table, ids, -3); }), "rlx.embedding: padding_id -3 (allowed: >= 0)");
}

// Losses.

TEST(LikelihoodLoss, AgreesWithTheDensities) {
  const Array x = array_of(f64, {2}, {0.5, 2}), target = array_of(f64, {2}, {1, 3}), variance = array_of(f64, {2}, {2, 0.5});
  const auto losses = run_all({x, target, variance}, [](const Values& v) {
    return Values{gaussian_nll(v[0], v[1], v[2], true, 1e-6, Reduction::none), poisson_nll(v[0], v[1], false, true, 0, Reduction::none)};
  });
  auto gauss = [](double m, double y, double v) { return -std::log(std::exp(-(y - m) * (y - m) / (2 * v)) / std::sqrt(2 * M_PI * v)); };
  expect_near(losses[0], {gauss(0.5, 1, 2), gauss(2, 3, 0.5)}, 1e-15);
  const double stirling = 3 * std::log(3.0) - 3 + 0.5 * std::log(2 * M_PI * 3);
  expect_near(losses[1], {0.5 - std::log(0.5), 2 - 3 * std::log(2.0) + stirling}, 1e-15);
}

TEST(TripletMargin, SwapCountsTheNearerDistance) {
  const Array anchor = array_of(f64, {1, 2}, {0, 0}), positive = array_of(f64, {1, 2}, {3, 4}), negative = array_of(f64, {1, 2}, {3, 5});
  const auto losses = run_all({anchor, positive, negative}, [](const Values& v) {
    return Values{triplet_margin(v[0], v[1], v[2], 1, 2, 0), triplet_margin(v[0], v[1], v[2], 1, 2, 0, true)};
  });
  EXPECT_NEAR(losses[0].get_double(0), 6 - std::sqrt(34.0), 1e-15);
  EXPECT_NEAR(losses[1].get_double(0), 5, 1e-15);  // negative is 1 away from positive
}

}  // namespace computed_places_test
}  // namespace rlx
