// The recurrences of state-space layers against plain loops.
#include "ops/evaluated.h"

namespace rlx {
namespace {

using namespace test;

TEST(StateSpace, SelectiveScanFollowsTheRecurrence) {
  const int b = 2, s = 5, h = 3, n = 4;
  const Array x = uniform(f64, {b, s, h}, -1, 1, 20), delta = uniform(f64, {b, s, h}, 0.1, 1, 21), a = uniform(f64, {h, n}, -2, -0.1, 22);
  const Array in = uniform(f64, {b, s, n}, -1, 1, 23), out = uniform(f64, {b, s, n}, -1, 1, 24), skip = uniform(f64, {h}, -1, 1, 25);
  const Array start = uniform(f64, {b, h, n}, -1, 1, 26);
  Doubles state = values_of(start), y(static_cast<std::size_t>(b * s * h));
  for (int i = 0; i < b; ++i)
    for (int t = 0; t < s; ++t)
      for (int c = 0; c < h; ++c) {
        const int at = (i * s + t) * h + c;
        double total = skip.get_double(c) * x.get_double(at);
        for (int k = 0; k < n; ++k) {
          double& cell = state[static_cast<std::size_t>((i * h + c) * n + k)];
          cell = std::exp(delta.get_double(at) * a.get_double(c * n + k)) * cell +
                 delta.get_double(at) * in.get_double((i * s + t) * n + k) * x.get_double(at);
          total += out.get_double((i * s + t) * n + k) * cell;
        }
        y[static_cast<std::size_t>(at)] = total;
      }
  const auto results = run_all({x, delta, a, in, out, skip, start},
                               [](const Values& v) { return selective_scan(v[0], v[1], v[2], v[3], v[4], v[5], v[6]); });
  expect_near(results[0], y, 1e-13);  // five steps of a dozen f64 roundings
  expect_near(results[1], state, 1e-13);
  Graph graph("test");
  Value g = graph.input("x", {b, s, h}, f32), m = graph.input("a", {h, n}, f32);
  EXPECT_EQ(error_of([&] { selective_scan(g, g, m, g, g); }), "rlx.selective_scan: B is f32[2,5,3] (allowed: shape [2,5,4])");
}

TEST(StateSpace, ASequenceInTwoPartsGivesTheSameAsInOne) {
  const int b = 1, s = 6, h = 2, n = 3;
  const Array q = uniform(f64, {b, s, h, n}, -1, 1, 30), k = uniform(f64, {b, s, h, n}, -1, 1, 31),
              v = uniform(f64, {b, s, h, n}, -1, 1, 32);
  const Array g = uniform(f64, {b, s, h}, -1, 0, 33), beta = uniform(f64, {b, s, h}, 0, 1, 34);
  const auto results = run_all({q, k, v, g, beta}, [&](const Values& x) {
    const Values whole = gated_delta_net(x[0], x[1], x[2], x[3], x[4]);
    auto part = [&](int i, int from, int to) { return slice_axis(x[static_cast<std::size_t>(i)], 1, from, to); };
    const Values first = gated_delta_net(part(0, 0, 4), part(1, 0, 4), part(2, 0, 4), part(3, 0, 4), part(4, 0, 4));
    const Values second = gated_delta_net(part(0, 4, s), part(1, 4, s), part(2, 4, s), part(3, 4, s), part(4, 4, s), first[1]);
    return Values{whole[0], whole[1], concat({first[0], second[0]}, 1), second[1]};
  });
  EXPECT_EQ(results[0], results[2]);
  EXPECT_EQ(results[1], results[3]);
}

TEST(StateSpace, GatedDeltaNetFollowsTheRecurrence) {
  const int b = 2, s = 4, h = 2, n = 3, m = 2;
  const Array q = uniform(f64, {b, s, h, n}, -1, 1, 40), k = uniform(f64, {b, s, h, n}, -1, 1, 41),
              v = uniform(f64, {b, s, h, m}, -1, 1, 42);
  const Array g = uniform(f64, {b, s, h}, -1, 0, 43), beta = uniform(f64, {b, s, h}, 0, 1, 44),
              start = uniform(f64, {b, h, n, m}, -1, 1, 45);
  Doubles state = values_of(start), o(static_cast<std::size_t>(b * s * h * m));
  for (int i = 0; i < b; ++i)
    for (int t = 0; t < s; ++t)
      for (int c = 0; c < h; ++c) {
        const int gate = (i * s + t) * h + c;
        auto cell = [&](int r, int j) -> double& { return state[static_cast<std::size_t>(((i * h + c) * n + r) * m + j)]; };
        for (int j = 0; j < m; ++j) {
          double recalled = 0;
          for (int r = 0; r < n; ++r) recalled += (cell(r, j) *= std::exp(g.get_double(gate))) * k.get_double(gate * n + r);
          const double d = (v.get_double(gate * m + j) - recalled) * beta.get_double(gate);
          double total = 0;
          for (int r = 0; r < n; ++r) total += (cell(r, j) += k.get_double(gate * n + r) * d) * q.get_double(gate * n + r);
          o[static_cast<std::size_t>(gate * m + j)] = total / std::sqrt(3.0);
        }
      }
  const auto results =
      run_all({q, k, v, g, beta, start}, [](const Values& x) { return gated_delta_net(x[0], x[1], x[2], x[3], x[4], x[5]); });
  expect_near(results[0], o, 1e-13);  // four steps of a dozen f64 roundings
  expect_near(results[1], state, 1e-13);
}

}  // namespace
}  // namespace rlx
