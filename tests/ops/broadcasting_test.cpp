// Values that are one number or one smaller value repeated, as NumPy names them.
#include "ops/evaluated.h"

namespace rlx {
namespace {

using namespace test;

TEST(Broadcasting, BroadcastToFollowsNumPy) {
  const Array x = array_of(i32, {2, 1}, {1, 2});
  EXPECT_EQ(computed({x}, [](const Values& v) { return broadcast_to(v[0], {3, 2, 2}); }),
            array_of(i32, {3, 2, 2}, {1, 1, 2, 2, 1, 1, 2, 2, 1, 1, 2, 2}));
  EXPECT_EQ(computed({x}, [](const Values& v) { return broadcast_to(v[0], {2, 1}); }), x);
  Graph graph("test");
  const Dim rows = Dim::symbol("B", 8);
  const Value row = graph.input("row", {3}, f32);
  EXPECT_EQ(broadcast_to(row, {rows, 3}).type(), (Type{f32, {rows, 3}}));
  EXPECT_EQ(error_of([&] { broadcast_to(row, {3, 2}); }), "rlx.broadcast_to: shapes [3] and [3,2] do not broadcast: 2 against 3");
  const Value wide = graph.input("wide", {2, 3}, f32);
  EXPECT_EQ(error_of([&] { broadcast_to(wide, {3}); }), "rlx.broadcast_to: f32[2,3] does not broadcast to [3]");
}

TEST(Broadcasting, FullTakesTheNumberAsTheTypeStoresIt) {
  const Array near = array_of(f32, {1}, {7});
  const auto all = run_all({near}, [](const Values& v) {
    return Values{full(v[0], {2, 2}, 1.5), full(v[0], {3}, -1, u8), full(v[0], {}, NAN, i32), full(v[0], {0, 4}, 1)};
  });
  EXPECT_EQ(all[0], array_of(f32, {2, 2}, {1.5, 1.5, 1.5, 1.5}));
  EXPECT_EQ(all[1], array_of(u8, {3}, {0, 0, 0}));
  EXPECT_EQ(all[2], array_of(i32, {}, {0}));
  EXPECT_EQ(all[3], Array(f32, {0, 4}));
}

TEST(Broadcasting, LikeTakesShapeAndType) {
  const Array x = array_of(i16, {2, 2}, {5, 6, 7, 8});
  const auto all = run_all({x}, [](const Values& v) { return Values{zeros_like(v[0]), ones_like(v[0]), full_like(v[0], -3)}; });
  EXPECT_EQ(all[0], array_of(i16, {2, 2}, {0, 0, 0, 0}));
  EXPECT_EQ(all[1], array_of(i16, {2, 2}, {1, 1, 1, 1}));
  EXPECT_EQ(all[2], array_of(i16, {2, 2}, {-3, -3, -3, -3}));
}

}  // namespace
}  // namespace rlx
