// Indices at the ends of their types, zero tangents beside infinities, axes without elements, steps as large as integers get: by the
// reference and compiled.
#include "ops/both.h"
#include "rlx/ops.h"
#include "rlx/transform.h"

namespace rlx::test {
namespace corners_test {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr std::int64_t huge = std::numeric_limits<std::int64_t>::max();

Array counting(std::int64_t size) {
  Array x(f32, {size});
  for (std::int64_t i = 0; i < size; ++i) x.set_double(i, static_cast<double>(i));
  return x;
}

// `take`

TEST(Take, CountsFromTheEndInEveryIntegerType) {
  const Array x = counting(40000);
  const std::vector<std::pair<DType, Doubles>> cases{{i4, {-1, -8, 7}},
                                                     {i8, {-1, -128, 127}},
                                                     {i16, {-1, -32768, 32767}},
                                                     {i32, {-1, -2147483648.0, 2147483647}},
                                                     {i64, {-1, -0x1p63, 0x1p62}},
                                                     {u8, {0, 1, 255}},
                                                     {u16, {0, 1, 65535}},
                                                     {u32, {0, 1, 4294967295}},
                                                     {u64, {0, 1, 0x1p63}}};
  for (const auto& [dtype, indices] : cases) {
    SCOPED_TRACE(name(dtype));
    Doubles filled, clipped;
    for (double i : indices) {
      const double from_end = i < 0 ? i + 40000 : i;
      filled.push_back(from_end >= 0 && from_end < 40000 ? from_end : nan);
      clipped.push_back(std::clamp(i, 0.0, 39999.0));
    }
    const Array at = array_of(dtype, {3}, indices);
    expect_near(both({x, at}, [](const Values& v) { return take(v[0], v[1], 0, IndexMode::fill); }), filled, 0);
    expect_near(both({x, at}, [](const Values& v) { return take(v[0], v[1], 0, IndexMode::clip); }), clipped, 0);
    expect_near(both({x, at}, [](const Values& v) { return take_along_axis(v[0], v[1], 0, IndexMode::fill); }), filled, 0);
  }
}

TEST(Take, FillsRowsOfAnyLength) {
  // 2^25 elements in a row: compiled, not run, as the operand alone has 8 GiB.
  Graph graph;
  Value x = graph.input("x", {64, 8192, 4096}, f32), ids = graph.input("ids", {5}, i64);
  graph.output("y", slice_axis(take(x, ids, 0, IndexMode::fill), 1, 0, 1));
  EXPECT_NO_THROW(compiling_session().compile(graph));
}

TEST(Take, OfAnAxisWithoutElementsGivesNoneOrAnError) {
  const Array empty(f32, {0, 4}), none(i32, {0});
  EXPECT_EQ(run({empty, none}, [](const Values& v) { return take(v[0], v[1]); }), Doubles{});
  EXPECT_EQ(error_of([&] { run({empty, ints({1}, {0})}, [](const Values& v) { return take(v[0], v[1]); }); }),
            "rlx.take: axis 0 of f32[0,4] has no elements, indices are i32[1] (allowed: none)");
}

TEST(DynamicSlice, ClampsStartsOfEveryType) {
  const Array x = counting(200);
  for (const auto& [dtype, start, first] : std::vector<std::tuple<DType, double, double>>{
           {u64, 0x1p63, 198}, {i64, -0x1p63, 0}, {i64, 0x1p62, 198}, {i8, -128, 0}, {u8, 255, 198}, {u32, 4294967295, 198}}) {
    SCOPED_TRACE(name(dtype));
    const Array at = array_of(dtype, {}, {start});
    EXPECT_EQ(both({x, at}, [](const Values& v) { return dynamic_slice(v[0], {v[1]}, {2}); }), (Doubles{first, first + 1}));
  }
  const Array back = array_of(i8, {}, {-1});
  EXPECT_EQ(both({x, back}, [](const Values& v) { return dynamic_slice(v[0], {v[1]}, {1}, true); }), (Doubles{199}));
}

TEST(GatherAndScatter, TakeIndicesUpToTheEndsOfTheirTypes) {
  const Array x = counting(200);
  const GatherNumbers elements{{}, {0}, {0}};
  for (const auto& [dtype, index] : std::vector<std::pair<DType, double>>{{i8, -128},
                                                                          {i8, 127},
                                                                          {u8, 255},
                                                                          {i16, -32768},
                                                                          {u16, 65535},
                                                                          {i32, -0x1p31},
                                                                          {u32, 0x1p32 - 1},
                                                                          {i64, -0x1p63},
                                                                          {i64, 0x1p62},
                                                                          {i64, 0x1p40},
                                                                          {u64, 0x1p63}}) {
    SCOPED_TRACE(fmt::format("{} {}", name(dtype), index));
    const Array at = array_of(dtype, {1, 1}, {index}), ones = floats({1}, {1000});
    const double clipped = std::clamp(index, 0.0, 199.0);
    const bool inside = index == clipped;
    EXPECT_EQ(both({x, at}, [&](const Values& v) { return gather(v[0], v[1], elements, {1}); }), (Doubles{clipped}));
    expect_near(both({x, at}, [&](const Values& v) { return gather(v[0], v[1], elements, {1}, IndexMode::fill); }), {inside ? index : nan},
                0);
    for (const IndexMode mode : {IndexMode::clip, IndexMode::fill}) {
      const auto added = [&](const Values& v) { return scatter(v[0], v[1], v[2], elements, ScatterKind::add, mode) - v[0]; };
      Doubles wanted(200, 0);
      if (inside || mode == IndexMode::clip) wanted[static_cast<std::size_t>(clipped)] = 1000;
      EXPECT_EQ(both({x, at, ones}, added), wanted);
    }
    const Array flat = array_of(dtype, {1}, {index});
    EXPECT_EQ(both({x, array_of(dtype, {}, {index}), ones},
                   [](const Values& v) { return slice_axis(dynamic_update(v[0], v[2], {v[1]}), 0, 199, 200); }),
              (Doubles{index >= 199 ? 1000.0 : 199.0}));
    EXPECT_EQ(both({flat}, [](const Values& v) { return sum_all(one_hot(v[0], 200)); }), (Doubles{inside ? 1.0 : 0.0}));
    EXPECT_EQ(both({x, flat}, [](const Values& v) { return embedding(expand_dims(v[0], {1}), v[1]); }), (Doubles{clipped}));
  }
}

// Zero tangents

TEST(ZeroTangents, StayZeroBesideInfinities) {
  const Array x = floats({2}, {infinity, 1}), z = floats({2}, {infinity, nan}), d = floats({2}, {infinity, -infinity});
  const auto tangent = [&](const std::function<Value(const Values&)>& f, std::size_t by) {
    return both({x, z, d}, [&](const Values& v) { return jvp({f(v)}, {v[by]}, {v[2]})[0]; });
  };
  expect_near(tangent([](const Values& v) { return concat({v[0], v[1]}, 0); }, 1), {0, 0, infinity, -infinity}, 0);
  expect_near(tangent([](const Values& v) { return select(lt(v[0], scalar(v[0], 2, f32)), v[1], v[0]); }, 0), {infinity, 0}, 0);
  const Array low = floats({2}, {1, 5}), high = floats({2}, {2, 3});
  const auto gradients = [&](const std::function<Value(const Values&)>& f) {
    return both_all({low, high, d}, [&](const Values& v) { return vjp({f(v)}, {v[0], v[1]}, {v[2]}); });
  };
  const auto of_max = gradients([](const Values& v) { return max(v[0], v[1]); });
  expect_near(of_max[0], {0, -infinity}, 0);
  expect_near(of_max[1], {infinity, 0}, 0);
  const auto of_min = gradients([](const Values& v) { return min(v[0], v[1]); });
  expect_near(of_min[0], {infinity, 0}, 0);
  expect_near(of_min[1], {0, -infinity}, 0);
  const auto of_select = gradients([](const Values& v) { return select(lt(v[0], v[1]), v[0], v[1]); });
  expect_near(of_select[0], {infinity, 0}, 0);
  expect_near(of_select[1], {0, -infinity}, 0);
  const Array rows = floats({2, 3}, {1, 3, 2, 5, 4, 6});
  expect_near(both({rows, d}, [](const Values& v) { return vjp({reduce_max(v[0], {1})}, {v[0]}, {v[1]})[0]; }),
              {0, infinity, 0, 0, 0, -infinity}, 0);
}

TEST(ZeroTangents, OfPartsOfComplexNumbers) {
  const Array x = floats({2}, {1, 2}), d = floats({2}, {infinity, 3});
  const auto parts = both_all({x, d}, [](const Values& v) {
    Value t = jvp({complex(v[0], v[0] * 2)}, {v[0]}, {v[1]})[0],
          one = jvp({complex(scalar(v[0], 1, f32) + v[0], ones_like(v[0]))}, {v[0]}, {v[1]})[0];
    return Values{real(t), imag(t), real(one), imag(one)};
  });
  expect_near(parts[2], {infinity, 3}, 0);
  expect_near(parts[3], {0, 0}, 0);
}

// Axes without elements

TEST(EmptyAxes, SortsHaveGradients) {
  const Array x(f32, {0, 3});
  for (std::int64_t axis : {0, 1}) {
    const auto results = both_all({x}, [&](const Values& v) {
      Value total = sum_all(sort({v[0]}, 1, axis)[0]) + sum_all(top_k(v[0], 0, axis)[0]);
      return Values{grad(total, v)[0]};
    });
    EXPECT_EQ(results[0], Doubles{});
  }
}

/// The least and the greatest number of each type.
const std::vector<std::tuple<DType, double, double>> ends_of_types{{f64, -infinity, infinity},
                                                                   {f32, -infinity, infinity},
                                                                   {f16, -infinity, infinity},
                                                                   {bf16, -infinity, infinity},
                                                                   {f8e5m2, -infinity, infinity},
                                                                   {f8e4m3, -448, 448},
                                                                   {i4, -8, 7},
                                                                   {i8, -128, 127},
                                                                   {i16, -32768, 32767},
                                                                   {i32, -2147483648.0, 2147483647},
                                                                   {i64, -0x1p63, 0x1p63},
                                                                   {u4, 0, 15},
                                                                   {u8, 0, 255},
                                                                   {u16, 0, 65535},
                                                                   {u32, 0, 4294967295},
                                                                   {u64, 0, 0x1p64},
                                                                   {boolean, 0, 1}};

TEST(EmptyAxes, HaveTheEndsOfTheTypeAsExtremes) {
  for (const auto& [dtype, least, greatest] : ends_of_types) {
    SCOPED_TRACE(name(dtype));
    const Array none(dtype, {2, 0});
    EXPECT_EQ(both({none}, [](const Values& v) { return reduce_max(v[0], {1}); }), (Doubles{least, least}));
    EXPECT_EQ(both({none}, [](const Values& v) { return reduce_min(v[0], {1}); }), (Doubles{greatest, greatest}));
    EXPECT_EQ(both({none}, [](const Values& v) { return reduce_max(v[0], {0}); }), Doubles{});
  }
  EXPECT_EQ(both({Array(boolean, {0})}, [](const Values& v) { return stack({any(v[0], {0}), all(v[0], {0})}); }), (Doubles{0, 1}));
}

TEST(EmptyAxes, HaveThemWhereOnlyARunFindsThemEmpty) {
  const Dim n = Dim::symbol("n", 300);
  for (const auto& [dtype, least, greatest] : ends_of_types) {
    SCOPED_TRACE(name(dtype));
    Graph graph;
    Value x = graph.input("x", {2, n}, dtype);
    const Value rest = slice_axis(x, 1, 1, n);
    graph.output("max", reduce_max(rest, {1})), graph.output("min", reduce_min(rest, {1}));
    const auto program = compiling_session().compile(graph);
    for (std::int64_t size : {1, 2, 5, 300}) {
      const double low = is_unsigned_int(dtype) || is_bool(dtype) ? 0 : -8, high = is_bool(dtype) ? 1 : 7;
      std::mt19937 random(1);
      const Array in = random_array({dtype, {2, size}}, low, high, random);
      const Outputs seen = program.run({{"x", in}});
      const auto wanted = evaluate(graph, {{"x", in}});
      for (std::size_t i = 0; i < 2; ++i) EXPECT_EQ(values_of(seen[i]), values_of(wanted[i]));
      if (size > 1) continue;
      EXPECT_EQ(values_of(seen[0]), (Doubles{least, least}));
      EXPECT_EQ(values_of(seen[1]), (Doubles{greatest, greatest}));
    }
  }
}

TEST(EmptyAxes, ExtremesHaveTheTangentZero) {
  const Array none(f32, {2, 0});
  for (const auto reduce : {reduce_max, reduce_min, prod}) {
    const auto results = both_all({none}, [&](const Values& v) {
      Value y = reduce(v[0], Axes{1}, false);
      return Values{jvp({y}, v, v)[0], grad(sum_all(y), v)[0]};
    });
    EXPECT_EQ(results[0], (Doubles{0, 0}));
    EXPECT_EQ(results[1], Doubles{});
  }
}

TEST(EmptyAxes, WhatIsMadeOfExtremes) {
  const Array none(f32, {2, 0});
  EXPECT_EQ(both({none}, [](const Values& v) { return softmax(v[0], 1); }), Doubles{});
  EXPECT_EQ(both({none}, [](const Values& v) { return logsumexp(v[0], {1}); }), (Doubles{-infinity, -infinity}));
  EXPECT_EQ(both({none}, [](const Values& v) { return norm(v[0], {1}, infinity); }), (Doubles{0, 0}));
  EXPECT_EQ(error_of([&] { run({none}, [](const Values& v) { return argmax(v[0], 1); }); }),
            "rlx.argmax: axis 1 of f32[2,0] has no elements (allowed: at least 1)");
}

// Products that meet in one element

TEST(ScatterMul, HasDerivativesOfAnyOrderBesideZeros) {
  // Elements 0 and 2 of 0 to 3 take three updates, two and none of which are 0; one update goes outside.
  const Array x = floats({4}, {2, 3, 0.5, 7}), at = ints({7, 1}, {0, 2, 0, 9, 2, 0, 2}), u = floats({7}, {0, 2, 0, 5, -3, 4, 0.5});
  const auto product = [](const Values& v) { return scatter(v[0], v[1], v[2], {{}, {0}, {0}}, ScatterKind::mul, IndexMode::fill); };
  EXPECT_EQ(both({x, at, u}, product), (Doubles{0, 3, -1.5, 7}));
  const auto first = both_all({x, at, u}, [&](const Values& v) { return grad(sum_all(product(v)), {v[0], v[2]}); });
  EXPECT_EQ(first[0], (Doubles{0, 1, -3, 1}));
  EXPECT_EQ(first[1], (Doubles{0, -0.75, 0, 0, 0.5, 0, -3}));
  // The derivative of that of update 0 by update 2 is x times update 5, though both are 0.
  const auto second = both({x, at, u}, [&](const Values& v) {
    Value by_update = grad(sum_all(product(v)), {v[2]})[0];
    return grad(sum_all(slice_axis(by_update, 0, 0, 1)), {v[2]})[0];
  });
  EXPECT_EQ(second, (Doubles{0, 0, 8, 0, 0, 0, 0}));
  // What one element has is infinite, in front of and behind another's.
  const auto apart = both_all({floats({3}, {1, 1, 1}), ints({6, 1}, {1, 2, 0, 2, 1, 0}), floats({6}, {2, infinity, infinity, 1, 3, 5})},
                              [&](const Values& v) { return grad(sum_all(product(v)), {v[0], v[2]}); });
  EXPECT_EQ(apart[0], (Doubles{infinity, 6, infinity}));
  EXPECT_EQ(apart[1], (Doubles{3, 1, 5, infinity, 2, infinity}));
  const Array nothing(f32, {0}), nowhere(i32, {0, 1});
  const auto empty = both_all({x, nowhere, nothing}, [&](const Values& v) { return grad(sum_all(product(v)), {v[0], v[2]}); });
  EXPECT_EQ(empty, (std::vector<Doubles>{{1, 1, 1, 1}, {}}));
}

TEST(TopK, RefusesMoreThanThereIs) {
  EXPECT_EQ(error_of([] { run({floats({3}, {1, 2, 3})}, [](const Values& v) { return top_k(v[0], 5)[0]; }); }),
            "rlx.top_k: k = 5 along axis 0 of f32[3] (allowed: 0..3)");
}

// Regions

TEST(Scan, HasTheGradientZeroByWhatItsStepIgnores) {
  const Array start = floats({}, {1}), xs = floats({3}, {1, 2, 3});
  const auto gradients = both_all({start, xs}, [](const Values& v) {
    const Values results = scan(
        [](const Values& carry, const Values& x) { return std::pair{Values{carry[0] * 2}, Values{cast(cast(x[0], i32), f32) * 0 + 1}}; },
        {v[0]}, {v[1]});
    return grad(results[0] + sum_all(results[1]), v);
  });
  EXPECT_EQ(gradients[0], (Doubles{8}));
  EXPECT_EQ(gradients[1], (Doubles{0, 0, 0}));
  const auto alone = both_all({xs}, [](const Values& v) {
    Value start = scalar(v[0], 1, f32);
    const Values results =
        scan([](const Values& carry, const Values&) { return std::pair{Values{carry[0] + carry[0]}, Values{}}; }, {start}, v);
    return Values{results[0], grad(results[0], v)[0], jvp({results[0]}, v, {ones_like(v[0])})[0]};
  });
  EXPECT_EQ(alone, (std::vector<Doubles>{{8}, {0, 0, 0}, {0}}));
}

TEST(While, HasTheGradientZeroByWhatItsIntegersIgnore) {
  EXPECT_EQ(both({floats({}, {3})},
                 [](const Values& v) {
                   const Values last = while_loop([&](const Values& c) { return lt(cast(c[0], f32), v[0]); },
                                                  [](const Values& c) { return Values{c[0] + 1}; }, {scalar(v[0], 0, i32)});
                   return grad(cast(last[0], f32) * v[0], {v[0]})[0];
                 }),
            (Doubles{3}));
}

// Steps near 2^63

TEST(Steps, OfAnySizeAreExactOrAnError) {
  const Array x = floats({5}, {1, 2, 3, 4, 5});
  EXPECT_EQ(both({x}, [](const Values& v) { return slice_axis(v[0], 0, 1, 5, huge); }), (Doubles{2}));
  EXPECT_EQ(both({x}, [](const Values& v) { return grad(sum_all(slice_axis(v[0], 0, 1, 5, huge)), v)[0]; }), (Doubles{0, 1, 0, 0, 0}));
  EXPECT_EQ(both({x}, [](const Values& v) { return window(v[0], 0, 1, huge, huge); }), (Doubles{1}));
  EXPECT_EQ(both({x}, [](const Values& v) { return max_pool(v[0], {2}, {huge}); }), (Doubles{2}));
  EXPECT_EQ(both({x}, [](const Values& v) { return max_pool(v[0], {2}, {huge}, {}, {}, true); }), (Doubles{2}));
  EXPECT_EQ(both({floats({1}, {7})}, [](const Values& v) { return pad(v[0], {1}, {0}, {huge}); }), (Doubles{0, 7}));
  EXPECT_EQ(both({floats({1}, {7})}, [](const Values& v) { return grad(sum_all(pad(v[0], {1}, {0}, {huge})), v)[0]; }), (Doubles{1}));
  const Array line = floats({1, 1, 5}, {1, 2, 3, 4, 5}), weights = floats({1, 1, 1}, {10});
  EXPECT_EQ(both({line, weights}, [](const Values& v) { return conv(v[0], v[1], {huge}, {}, {huge}); }), (Doubles{10}));
  for (const auto& build : std::vector<std::function<Value(const Values&)>>{
           [](const Values& v) { return window(v[0], 0, 2, 1, huge); }, [](const Values& v) { return window(v[0], 0, huge, 1, huge); },
           [](const Values& v) { return max_pool(v[0], {2}, {}, {}, {huge}); },
           [](const Values& v) { return sum_pool(v[0], {2}, {}, {huge}); }, [](const Values& v) { return pad(v[0], {0}, {0}, {huge}); },
           [](const Values& v) { return fold(reshape(v[0], {5, 1}), 0, 5, huge, huge); }})
    EXPECT_NE(error_of([&] { run({x}, build); }), "no error");
}

// Moves that would change nothing

TEST(Sizes, AreNeverNegative) {
  const Array x(f32, {0}), one = floats({1}, {1});
  const auto error = [](const Array& array, const auto& build) { return error_of([&] { run({array}, build); }); };
  EXPECT_EQ(error(one, [](const Values& v) { return iota(v[0], {-1}, i32); }), "rlx.iota: i32[-1] has a negative size");
  EXPECT_EQ(error(one, [](const Values& v) { return broadcast(v[0], {-2, 1}, {1}); }), "rlx.broadcast: f32[-2,1] has a negative size");
  EXPECT_EQ(error(x, [](const Values& v) { return reshape(v[0], {-2, 0}); }), "rlx.reshape: f32[-2,0] has a negative size");
}

TEST(Moves, OfWrongListsAreAnErrorWhereTheyWouldChangeNothing) {
  const Array x = floats({2, 3}, {1, 2, 3, 4, 5, 6});
  for (const auto& build : std::vector<std::function<Value(const Values&)>>{
           [](const Values& v) { return transpose(v[0], {0, 0}); }, [](const Values& v) { return transpose(v[0], {1, 1}); },
           [](const Values& v) { return slice(v[0], {0}, v[0].shape(), {1, 1}); },
           [](const Values& v) { return slice(v[0], {0, 0}, v[0].shape(), {}); },
           [](const Values& v) { return pad(v[0], {0, 0}, {0, 0}, {0}); }})
    EXPECT_NE(error_of([&] { run({x}, build); }), "no error");
  EXPECT_EQ(both({x}, [](const Values& v) { return pad(slice(transpose(v[0], {0, 1}), {0, 0}, v[0].shape(), {1, 1}), {0, 0}, {0, 0}); }),
            (Doubles{1, 2, 3, 4, 5, 6}));
}

// Convolutions

TEST(Conv, MultipliesItsPadding) {
  const Array x = floats({1, 1, 2}, {1, 2}), w = floats({1, 1, 2}, {infinity, 1});
  expect_near(both({x, w}, [](const Values& v) { return conv(v[0], v[1], {}, {1}); }), {nan, infinity, infinity}, 0);
  expect_near(both({x, w}, [](const Values& v) { return conv_general(v[0], v[1], {.lhs_dilation = {2}}); }), {infinity, nan}, 0);
}

TEST(Conv, HasGradientsForEachOfABatchOfUnknownSize) {
  const Dim b = Dim::symbol("b", 8);
  struct Form {
    Dims x, w;
    ConvOptions options;
  };
  const std::vector<Form> forms{
      {{2, 4, 5, 4},
       {6, 2, 3, 2},
       {.strides = {2, 1}, .padding_lo = {1, 0}, .padding_hi = {0, 1}, .rhs_dilation = {1, 2}, .feature_group_count = 2}},
      {{4, 3, 6}, {4, 3, 2}, {.batch_group_count = 2}},
      {{1, 6, 5, 2}, {3, 2, 2, 4}, {{0, 3, 1, 2}, {3, 2, 0, 1}, {0, 3, 1, 2}, {1, 1}, {}, {}, {2, 1}, {}, 1, 1}}};
  for (const Form& form : forms) {
    const auto gradients = [&](const Values& v) {
      return vmap(
          [&](const Values& e) {
            Value y = conv_general(e[0], e[1], form.options);
            return grad(sum_all(y * y), e);
          },
          v, {0, 0});
    };
    const auto with = [](const Dim& size, Dims shape) { return shape.insert(shape.begin(), size), shape; };
    Graph symbolic, fixed;
    const auto outputs = [&](Graph& graph, const Dim& size) {
      const Values y = gradients({graph.input("x", with(size, form.x), f64), graph.input("w", with(size, form.w), f64)});
      graph.output("dx", y[0]), graph.output("dw", y[1]);
    };
    outputs(symbolic, b), outputs(fixed, 3);
    std::mt19937 random(1);
    const std::map<std::string, Array> inputs{{"x", random_array({f64, with(3, form.x)}, -2, 2, random)},
                                              {"w", random_array({f64, with(3, form.w)}, -2, 2, random)}};
    const auto wanted = evaluate(fixed, inputs), seen = evaluate(symbolic, inputs);
    const Outputs compiled = compiling_session().compile(symbolic).run({inputs.begin(), inputs.end()});
    for (std::size_t i = 0; i < 2; ++i) {  // sums of some ten products in another order
      expect_close(values_of(seen[i]), values_of(wanted[i]), 1e-11);
      expect_close(values_of(compiled[i]), values_of(wanted[i]), 1e-11);
    }
  }
}

}  // namespace corners_test
}  // namespace rlx::test
