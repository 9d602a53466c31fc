// Products of groups of rows and scans of associative functions, by the reference and compiled, against loops.
#include "ops/both.h"
#include "rlx/ops.h"
#include "rlx/transform.h"

namespace rlx::test {
namespace {

Array random(DType dtype, const Dims& shape, unsigned seed) {
  std::mt19937 generator(seed);
  return random_array({dtype, shape}, -2, 2, generator);
}

// `ragged_dot`

/// Row after row, with the group that it lies in.
Doubles by_rows(const Array& x, const Array& w, const std::vector<std::int64_t>& group_sizes) {
  const std::int64_t rows = x.shape()[0], inner = x.shape()[1], columns = w.shape()[2];
  Doubles y(static_cast<std::size_t>(rows * columns), 0);
  std::int64_t row = 0;
  for (std::size_t g = 0; g < group_sizes.size(); ++g)
    for (std::int64_t i = 0; i < group_sizes[g] && row < rows; ++i, ++row)
      for (std::int64_t c = 0; c < columns; ++c)
        for (std::int64_t k = 0; k < inner; ++k)
          y[static_cast<std::size_t>(row * columns + c)] +=
              x.get_double(row * inner + k) * w.get_double((static_cast<std::int64_t>(g) * inner + k) * columns + c);
  return y;
}

TEST(RaggedDot, MultipliesEachRowByTheMatrixOfItsGroup) {
  const std::vector<std::vector<std::int64_t>> groups{{100, 0, 203}, {1, 1, 1},       {0, 0, 0},         {303, 0, 0},
                                                      {-5, 64, 7},   {200, 200, 200}, {0, 0x7fffffff, 0}};
  const Array x = random(f64, {303, 6}, 1), w = random(f64, {3, 6, 4}, 2);
  for (const auto& sizes : groups) {
    SCOPED_TRACE(sizes[0]);
    const Array list = ints({3}, Doubles(sizes.begin(), sizes.end()));
    expect_close(both({x, w, list}, [](const Values& v) { return ragged_dot(v[0], v[1], v[2]); }, 1e-12), by_rows(x, w, sizes), 1e-12);
  }
}

TEST(RaggedDot, TakesAnyNumberOfRowsAndOfGroups) {
  const Dim m = Dim::symbol("m", 64);
  Graph graph;
  Value x = graph.input("x", {m, 6}, f64), w = graph.input("w", {3, 6, 4}, f64), sizes = graph.input("sizes", {3}, i32);
  graph.output("y", ragged_dot(x, w, sizes));
  const auto program = compiling_session().compile(graph);
  const Array matrices = random(f64, {3, 6, 4}, 2), groups = ints({3}, {4, 0, 9});
  for (std::int64_t rows : {1, 20, 64}) {
    const Array in = random(f64, {rows, 6}, 1);
    expect_close(values_of(program.run({{"x", in}, {"w", matrices}, {"sizes", groups}})[0]), by_rows(in, matrices, {4, 0, 9}), 1e-12);
  }
  const Array none(f32, {0, 3, 2}), rows = floats({2, 3}, {1, 2, 3, 4, 5, 6}), no_sizes(i32, {0});
  EXPECT_EQ(both({rows, none, no_sizes}, [](const Values& v) { return ragged_dot(v[0], v[1], v[2]); }), (Doubles{0, 0, 0, 0}));
}

TEST(RaggedDot, HasGradientsOfGroupsInBlocks) {
  // The gradient of the sum of squares, against that of the same with the matrix of each row.
  const Array x = random(f64, {40, 5}, 1), w = random(f64, {2, 5, 3}, 2), sizes = ints({2}, {27, 13});
  Doubles groups(40, 0);
  std::fill(groups.begin() + 27, groups.end(), 1);
  const auto gradients = [](Value y, const Values& v) { return grad(sum_all(y * y), {v[0], v[1]}); };
  const auto seen = both_all({x, w, sizes}, [&](const Values& v) { return gradients(ragged_dot(v[0], v[1], v[2]), v); }, 1e-11);
  const auto wanted =
      both_all({x, w, ints({40}, groups)}, [&](const Values& v) { return gradients(grouped_matmul(v[0], v[1], v[2]), v); }, 1e-11);
  for (std::size_t i = 0; i < 2; ++i) expect_close(seen[i], wanted[i], 1e-10);
}

TEST(RaggedDot, SaysWhatDoesNotFit) {
  EXPECT_EQ(error_of([] {
              run({floats({2, 3}, {1, 2, 3, 4, 5, 6}), Array(f32, {2, 4, 5}), ints({2}, {1, 1})},
                  [](const Values& v) { return ragged_dot(v[0], v[1], v[2]); });
            }),
            "rlx.ragged_dot: x f32[2,3], w f32[2,4,5], group_sizes i32[2] do not fit (allowed: x [M, K], w [G, K, N], group_sizes [G] of "
            "integers)");
}

// `associative_scan`

TEST(AssociativeScan, GivesRunningResultsOfAnyLengthAxisAndDirection) {
  const auto add = [](const Values& e, const Values& l) { return Values{e[0] + l[0]}; };
  for (std::int64_t n : {0, 1, 2, 3, 4, 5, 7, 8, 31, 1000})
    for (bool reverse : {false, true}) {
      SCOPED_TRACE(n);
      std::mt19937 generator(1);
      const Array x = random_array({i32, {2, n}}, -100, 100, generator);
      EXPECT_EQ(both({x}, [&](const Values& v) { return associative_scan(add, {v[0]}, -1, reverse)[0]; }),
                both({x}, [&](const Values& v) { return cumsum(v[0], 1, false, reverse); }));
    }
}

TEST(AssociativeScan, ScansMatricesBesideOtherValues) {
  // Products of matrices do not commute: the earlier one stands on the left.
  const Array x = random(f64, {3, 6, 2, 2}, 1), count = ints({3, 6}, Doubles(18, 1));
  const auto all = both_all(
      {x, count},
      [](const Values& v) {
        return associative_scan([](const Values& e, const Values& l) { return Values{matmul(e[0], l[0]), e[1] + l[1]}; }, v, 1);
      },
      1e-12);
  const auto at = [](std::int64_t row, std::int64_t k, std::int64_t i, std::int64_t j) {
    return static_cast<std::size_t>(((row * 6 + k) * 2 + i) * 2 + j);
  };
  for (std::int64_t row = 0; row < 3; ++row)
    for (std::int64_t k = 1; k < 6; ++k)
      for (std::int64_t i = 0; i < 2; ++i)
        for (std::int64_t j = 0; j < 2; ++j) {
          double wanted = 0;
          for (std::int64_t l = 0; l < 2; ++l)
            wanted += all[0][at(row, k - 1, i, l)] * x.get_double(static_cast<std::int64_t>(at(row, k, l, j)));
          EXPECT_NEAR(all[0][at(row, k, i, j)], wanted, 1e-12);
        }
  EXPECT_EQ(all[1], (Doubles{1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6}));
}

TEST(AssociativeScan, SaysWhatItCannotScan) {
  Graph graph;
  const Value x = graph.input("x", {4}, f32), y = graph.input("y", {3}, f32), z = graph.input("z", {Dim::symbol("n", 9)}, f32);
  const auto first = [](const Values& e, const Values&) { return e; };
  EXPECT_EQ(error_of([&] { associative_scan(first, Values{}); }), "rlx.associative_scan: no values (allowed: at least one)");
  EXPECT_EQ(error_of([&] { associative_scan(first, {x, y}); }),
            "rlx.associative_scan: axis 0 of f32[3] beside f32[4] (allowed: one static size)");
  EXPECT_EQ(error_of([&] { associative_scan(first, z); }),
            "rlx.associative_scan: axis 0 of f32[n] beside f32[n] (allowed: one static size)");
  EXPECT_EQ(error_of([&] { associative_scan([](const Values& e, const Values&) { return Values{cast(e[0], f64)}; }, x); }),
            "rlx.associative_scan: the function gives (f64[2]) for (f32[2]) (allowed: the types that it is given)");
}

}  // namespace
}  // namespace rlx::test
