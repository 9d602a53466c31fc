// Small values worked out by hand: convolutions and pools.
#include <gtest/gtest.h>

#include "ops/values.h"
#include "rlx/ops.h"
#include "rlx/session.h"
#include "rlx/transform.h"

namespace rlx::test {
namespace {

const Array line = floats({1, 1, 5}, {1, 2, 3, 4, 5});

TEST(Conv, SlidesWithoutFlipping) {
  const Array w = floats({1, 1, 2}, {1, 10});
  EXPECT_EQ(run({line, w}, [](const Values& x) { return conv(x[0], x[1]); }), (Doubles{21, 32, 43, 54}));
  EXPECT_EQ(run({line, w}, [](const Values& x) { return conv(x[0], x[1], {2}, {1}); }), (Doubles{10, 32, 54}));
  EXPECT_EQ(run({line, w}, [](const Values& x) { return conv(x[0], x[1], {}, {}, {3}); }), (Doubles{41, 52}));
  // One hole between neighbours of x, one element cut off in front: 0 2 0 3 0 4 0 5.
  EXPECT_EQ(run({line, w}, [](const Values& x) { return conv_general(x[0], x[1], {.padding_lo = {-1}, .lhs_dilation = {2}}); }),
            (Doubles{20, 2, 30, 3, 40, 4, 50}));
}

TEST(Conv, GroupsSeeTheirOwnChannels) {
  const Array x = floats({1, 2, 2}, {1, 2, 3, 4}), w = floats({2, 1, 1}, {10, 100});
  EXPECT_EQ(run({x, w}, [](const Values& v) { return conv(v[0], v[1], {}, {}, {}, 2); }), (Doubles{10, 20, 300, 400}));
  // Batch groups: entry 0 meets the first output channel, entry 1 the second.
  const Array batch = floats({2, 1, 2}, {1, 2, 3, 4});
  EXPECT_EQ(run({batch, w}, [](const Values& v) { return conv_general(v[0], v[1], {.batch_group_count = 2}); }),
            (Doubles{10, 20, 300, 400}));
  EXPECT_EQ(error_of([&] { run({x, w}, [](const Values& v) { return conv(v[0], v[1]); }); }),
            "rlx.conv: f32[1,2,2] has 2 channels, f32[2,1,1] takes 1 in each of 1 groups");
}

TEST(Conv, KeepsSymbolicBatchAndLength) {
  Graph graph;
  const Dim b = Dim::symbol("b", 8), n = Dim::symbol("n", 64);
  Value x = graph.input("x", {b, 3, n + 2}, f32), w = graph.input("w", {4, 3, 3}, f32);
  EXPECT_EQ(conv(x, w).type().to_string(), "f32[b,4,n]");
  EXPECT_EQ(conv(x, w, {}, {1}).dim(2), n + 2);
  EXPECT_EQ(error_of([&] { conv(graph.input("short", {1, 1, n}, f32), graph.param("five", {1, 1, 5}, f32), {}, {1}); }),
            "rlx.conv: spatial axis 0 of f32[1,1,n] has n+2 elements with its padding, which may be fewer than the kernel f32[1,1,5] spans "
            "(allowed: padding that is enough for every size)");
}

TEST(Pool, StridesAlongASymbolicLengthThatTheyDivide) {
  Graph graph;
  const Dim n = Dim::symbol("n", 64);
  Value x = graph.input("x", {2, n * 2}, f32), y = max_pool(x, {2}, {2});
  EXPECT_EQ(y.type().to_string(), "f32[2,n]");
  EXPECT_EQ(avg_pool(concat({x, x, x}, 1), {3}, {3}, {1}).type().to_string(), "f32[2,2*n]");
  EXPECT_EQ(error_of([&] { max_pool(x, {3}, {4}, {1}); }),
            "rlx.max_pool: axis 1 of f32[2,2*n+2]: stride 4 on a symbolic size: 2*n-1 does not divide");
  graph.output("y", y);
  graph.output("slope", grad(sum_all(y * y), {x})[0]);
  const Array six = floats({2, 6}, {1, 5, 4, 2, 3, 3, 9, 8, 7, 6, 1, 0});
  const auto results = Session(Device::cpu(), {.cache_folder = ""}).compile(graph).run({{"x", six}});
  EXPECT_EQ(values_of(results.at("y")), (Doubles{5, 4, 3, 9, 7, 1}));
  EXPECT_EQ(values_of(results.at("slope")), (Doubles{0, 10, 8, 0, 6, 0, 18, 0, 14, 0, 2, 0}));
}

TEST(ConvTranspose, SpreadsEveryElement) {
  const Array x = floats({1, 1, 3}, {1, 2, 3}), w = floats({1, 1, 2}, {1, 10});
  EXPECT_EQ(run({x, w}, [](const Values& v) { return conv_transpose(v[0], v[1], {2}); }), (Doubles{1, 10, 2, 20, 3, 30}));
  EXPECT_EQ(run({x, w}, [](const Values& v) { return conv_transpose(v[0], v[1]); }), (Doubles{1, 12, 23, 30}));
  EXPECT_EQ(run({x, w}, [](const Values& v) { return conv_transpose(v[0], v[1], {2}, {1}, {1}); }), (Doubles{10, 2, 20, 3, 30}));
  // Two groups of one channel, each with two output channels.
  const Array channels = floats({1, 2, 1}, {1, 2}), grouped = floats({2, 2, 1}, {3, 4, 5, 6});
  EXPECT_EQ(run({channels, grouped}, [](const Values& v) { return conv_transpose(v[0], v[1], {}, {}, {}, {}, 2); }),
            (Doubles{3, 4, 10, 12}));
}

TEST(Pool, ReducesWindowsOfTheLastAxes) {
  const Array x = floats({1, 3, 4}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  EXPECT_EQ(run({x}, [](const Values& v) { return max_pool(v[0], {2, 2}); }), (Doubles{6, 8}));
  EXPECT_EQ(run({x}, [](const Values& v) { return sum_pool(v[0], {2, 2}, {1, 2}); }), (Doubles{14, 22, 30, 38}));
  EXPECT_EQ(run({x}, [](const Values& v) { return avg_pool(v[0], {3, 4}); }), (Doubles{6.5}));
  EXPECT_EQ(run({x}, [](const Values& v) { return max_pool(v[0], {2, 2}, {}, {1, 0}); }), (Doubles{2, 4, 10, 12}));
  EXPECT_EQ(run({line}, [](const Values& v) { return max_pool(v[0], {2}, {1}, {}, {3}); }), (Doubles{4, 5}));
}

TEST(Pool, CountsPaddingWhenAsked) {
  EXPECT_EQ(run({line}, [](const Values& v) { return avg_pool(v[0], {2}, {2}, {1}); }), (Doubles{0.5, 2.5, 4.5}));
  EXPECT_EQ(run({line}, [](const Values& v) { return avg_pool(v[0], {2}, {2}, {1}, false, false); }), (Doubles{1, 2.5, 4.5}));
}

TEST(Pool, CeilModeKeepsALastPartialWindow) {
  EXPECT_EQ(run({line}, [](const Values& v) { return max_pool(v[0], {2}, {2}, {}, {}, true); }), (Doubles{2, 4, 5}));
  // What only ceil_mode adds is never counted, even when padding is.
  EXPECT_EQ(run({line}, [](const Values& v) { return avg_pool(v[0], {2}, {2}, {}, true, true); }), (Doubles{1.5, 3.5, 5}));
  // A window that would start in the padding behind x is left out.
  EXPECT_EQ(run({floats({1, 4}, {1, 2, 3, 4})}, [](const Values& v) { return max_pool(v[0], {2}, {3}, {1}, {}, true); }), (Doubles{1, 4}));
}

TEST(Pool, MaxGivesTheGradientToTheFirstOfTies) {
  EXPECT_EQ(run_jvp_of(floats({4}, {2, 2, 1, 1}), floats({4}, {1, 10, 100, 1000}), [](Value x) { return max_pool(x, {2}); }),
            (Doubles{1, 100}));
  EXPECT_EQ(run_jvp_of(floats({2, 2}, {1, 3, 3, 3}), floats({2, 2}, {1, 10, 100, 1000}), [](Value x) { return max_pool(x, {2, 2}); }),
            (Doubles{10}));
}

TEST(Pool, NamesWhatIsWrong) {
  EXPECT_EQ(error_of([] { run({line}, [](const Values& v) { return max_pool(v[0], {2}, {}, {2}); }); }),
            "rlx.max_pool: padding 2 (allowed: 0..1, half the window)");
  EXPECT_EQ(error_of([] { run({ints({2}, {1, 2})}, [](const Values& v) { return avg_pool(v[0], {2}); }); }),
            "rlx.avg_pool: i32[2] has no means (allowed: floats)");
}

}  // namespace
}  // namespace rlx::test
