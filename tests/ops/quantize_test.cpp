// Quantization and integer inference against hand-computed numbers, and against plain loops that share no code with the ops.
#include "ops/evaluated.h"

namespace rlx {
namespace {

using namespace test;

TEST(Quantize, RoundsHalfToEvenAndSaturates) {
  const Array x = array_of(f32, {8}, {0.25, 0.75, 1.25, -0.25, -0.75, 100, -100, NAN});
  auto codes = [&](DType to, double zero) {
    return values_of(computed({x}, [&](const Values& v) { return quantize(v[0], Doubles{0.5}, Doubles{zero}, to); }));
  };
  EXPECT_EQ(codes(i8, 0), (Doubles{0, 2, 2, 0, -2, 127, -128, 0}));
  EXPECT_EQ(codes(u8, 3), (Doubles{3, 5, 5, 3, 1, 203, 0, 0}));
  EXPECT_EQ(codes(i4, 0), (Doubles{0, 2, 2, 0, -2, 7, -8, 0}));
  EXPECT_EQ(codes(u4, 1), (Doubles{1, 3, 3, 1, 0, 15, 0, 0}));
}

TEST(Quantize, ScalesOfAnAxisComeBackInDequantize) {
  const Array x = array_of(f32, {2, 3}, {1, 2, 3, 10, 20, 30});
  const auto results = run_all({x}, [](const Values& v) {
    Value codes = quantize(v[0], Doubles{0.5, 10}, Doubles{1, -2}, i8, 0);
    return Values{codes, dequantize(codes, Doubles{0.5, 10}, Doubles{1, -2}, 0)};
  });
  EXPECT_EQ(values_of(results[0]), (Doubles{3, 5, 7, -1, 0, 1}));
  EXPECT_EQ(results[1], x);
  Graph graph("test");
  Value g = graph.input("x", {2, 3}, f32);
  EXPECT_EQ(error_of([&] { quantize(g, Doubles{1, 2}, {}, i8, 1); }), "rlx.quantize: 2 values for axis 1 of f32[2,3]");
}

TEST(Quantize, ZeroPointsOf32BitCodesAreExact) {
  constexpr double most = INT32_MAX, least = INT32_MIN, odd = 16777217;  // 2^24 + 1, which f32 does not hold
  const Array x = array_of(f32, {6}, {0, 1, -1, INFINITY, 3e9, NAN});
  EXPECT_EQ(values_of(computed({x}, [](const Values& v) { return quantize(v[0], Doubles{1}, Doubles{odd}, i32); })),
            (Doubles{odd, odd + 1, odd - 1, most, most, 0}));
  const Array codes = array_of(i32, {4}, {least, most, odd, -5});
  auto numbers = [&](double zero, DType scale) {
    return values_of(
        computed({codes, array_of(scale, {}, {1})}, [&](const Values& v) { return dequantize(v[0], v[1], scalar(v[0], zero, i32)); }));
  };
  EXPECT_EQ(numbers(1, f64), (Doubles{least - 1, most - 1, odd - 1, -6}));
  EXPECT_EQ(numbers(most, f64), (Doubles{least - most, 0, odd - most, -5 - most}));
  EXPECT_EQ(numbers(1, f32), (Doubles{least, -least, odd - 1, -6}));  // f32 rounds 2^31 - 2 and -2^31 - 1 to 2^31 and -2^31
}

TEST(FakeQuantize, RoundsToTheCodesOfTheBatchScale) {
  const Array x = array_of(f32, {2, 3}, {7, 3.4, -2.6, 0, 0, 0});
  FakeQuantizeOptions options{.bits = 4, .axis = 0};
  const auto results = run_all({x}, [&](const Values& v) { return fake_quantize(v[0], options); });
  EXPECT_EQ(values_of(results[0]), (Doubles{7, 3, -3, 0, 0, 0}));
  EXPECT_EQ(values_of(results[1]), (Doubles{1, 1}));  // a row of zeros has scale 1
}

TEST(FakeQuantize, ScaleModesReadAndRenewTheState) {
  const Array x = array_of(f32, {2}, {127, -12.7}), state = array_of(f32, {}, {3});
  const auto ema =
      run_all({x, state}, [](const Values& v) { return fake_quantize(v[0], {.scale_mode = ScaleMode::ema, .decay = 0.75}, v[1]); });
  EXPECT_EQ(ema[1].get_double(0), 2.5);  // 0.75 * 3 + 0.25 * 1
  EXPECT_EQ(values_of(ema[0]), (Doubles{127.5, -12.5}));
  const auto fixed = run_all({x, state}, [](const Values& v) { return fake_quantize(v[0], {.scale_mode = ScaleMode::fixed}, v[1]); });
  EXPECT_EQ(values_of(fixed[0]), (Doubles{126, -12}));
  EXPECT_EQ(fixed[1].get_double(0), 3);
  Graph graph("test");
  Value g = graph.input("x", {2}, f32);
  EXPECT_EQ(error_of([&] { fake_quantize(g, {.scale_mode = ScaleMode::ema}); }), "rlx.fake_quantize: scale mode 'ema' needs a state");
}

TEST(FakeQuantize, DerivativeFollowsTheChosenEstimator) {
  const Array x = array_of(f32, {4}, {0.5, -6, 14, 20}), scale = array_of(f32, {1}, {2}), ones = array_of(f32, {4}, Doubles(4, 1));
  auto slope = [&](std::string word) {
    return tangent(find_op("fake_quantize"), Attrs{std::int64_t{4}, word}, {x, scale}, {ones, array_of(f32, {1}, {1})});
  };
  EXPECT_EQ(values_of(slope("identity")), (Doubles{1, 1, 1, 1}));
  EXPECT_EQ(values_of(slope("clipped")), (Doubles{1, 1, 1, 0}));
  auto flat = [](double r) { return 1 - std::tanh(r) * std::tanh(r); };
  expect_near(slope("tanh"), {flat(0.25), flat(-3), flat(7), flat(10)}, 1e-6);
  expect_near(slope("hardtanh"), {1 - 0.25 / 7, 1 - 3.0 / 7, 0, 0}, 1e-6);
}

TEST(FakeQuantize, LearnedScaleHasTheGradientOfThePaper) {
  const Array x = array_of(f32, {1, 4}, {0.5, -6.5, 20, -20}), scale = array_of(f32, {1, 1}, {2});
  EXPECT_EQ(values_of(computed({x, scale}, [](const Values& v) { return fake_quantize_lsq(v[0], v[1], 4); })), (Doubles{0, -6, 14, -14}));
  const OpDef& op = find_op("fake_quantize_lsq");
  const Attrs attrs{std::int64_t{4}};
  const Array ones = array_of(f32, {1, 4}, Doubles(4, 1)), one = array_of(f32, {1, 1}, {1});
  EXPECT_EQ(values_of(tangent(op, attrs, {x, scale}, {ones, Array()})), (Doubles{1, 1, 0, 0}));
  const double g = 1 / std::sqrt(4.0 * 7);  // four elements share the scale
  expect_near(tangent(op, attrs, {x, scale}, {Array(), one}), {-0.25 * g, 0.25 * g, 7 * g, -7 * g}, 1e-6);
}

// gemmlowp's reference: saturating rounding doubling high multiply, then rounding shift right.
std::int32_t tflite_scaled(std::int32_t x, std::int32_t multiplier, int shift) {
  const auto a = static_cast<std::int32_t>(static_cast<std::uint32_t>(x) << std::max(shift, 0));
  std::int32_t high = INT32_MAX;
  if (!(a == multiplier && a == INT32_MIN)) {
    const std::int64_t product = static_cast<std::int64_t>(a) * multiplier, nudge = product >= 0 ? 1 << 30 : 1 - (1 << 30);
    high = static_cast<std::int32_t>((product + nudge) / (std::int64_t{1} << 31));
  }
  const int exponent = std::max(-shift, 0);
  const auto mask = static_cast<std::int32_t>((std::int64_t{1} << exponent) - 1);
  const std::int32_t rest = high & mask, threshold = (mask >> 1) + (high < 0);
  return (high >> exponent) + (rest > threshold);
}

TEST(IntegerInference, RequantizeAgreesWithTheReferenceBitForBit) {
  std::mt19937 generator(9);
  const int count = 4000;
  Array x(i32, {count}), multiplier(i32, {count}), shift(i32, {count});
  Doubles wanted;
  for (int i = 0; i < count; ++i) {
    const int s = std::uniform_int_distribution<int>(-31, 8)(generator);
    // Results spread over the 8-bit range, with ties and both signs; the extremes come first.
    auto value = static_cast<std::int32_t>(std::ldexp(std::uniform_real_distribution<double>(-300, 300)(generator), std::min(-s, 22)));
    auto m = std::uniform_int_distribution<std::int32_t>(1 << 30, INT32_MAX)(generator);
    if (i % 7 == 0) m = 1 << 30;
    if (i < 4) value = i % 2 ? INT32_MIN : INT32_MAX, m = i < 2 ? INT32_MIN : INT32_MAX;
    x.set_int(i, value);
    multiplier.set_int(i, m);
    shift.set_int(i, i < 4 ? -24 : s);
    wanted.push_back(std::clamp<std::int64_t>(static_cast<std::int64_t>(tflite_scaled(value, m, i < 4 ? -24 : s)) + 5, -128, 100));
  }
  EXPECT_EQ(values_of(computed({x, multiplier, shift},
                               [](const Values& v) { return requantize(v[0], v[1], v[2], {.out_zero = 5, .high = 100}); })),
            wanted);
}

TEST(IntegerInference, FixedPointFactorsGiveTheFactorBack) {
  const Doubles factors{1, 0.5, 0.0003, 3.7, 0, 0.99999999999};
  const auto [multipliers, shifts] = fixed_point_factors(factors);
  EXPECT_EQ(multipliers.get_int(0), 1 << 30);
  EXPECT_EQ(shifts.get_int(0), 1);
  for (std::int64_t i = 0; i < 6; ++i) {
    const double factor = std::ldexp(multipliers.get_double(i), static_cast<int>(shifts.get_int(i)) - 31);
    EXPECT_NEAR(factor, factors[static_cast<std::size_t>(i)],
                factors[static_cast<std::size_t>(i)] * std::ldexp(1.0, -31));  // half a step of Q0.31
  }
  EXPECT_EQ(error_of([] { fixed_point_factors({-1}); }), "rlx.fixed_point_factors: factor 0 is -1 (allowed: finite, >= 0)");
}

TEST(IntegerInference, MatMulAgreesWithLoops) {
  const int m = 3, k = 7, n = 4;
  const Array x = uniform(i8, {m, k}, -128, 127, 10), w = uniform(i8, {k, n}, -127, 127, 11), bias = uniform(i32, {n}, -500, 500, 12);
  const auto [multiplier, shift] = fixed_point_factors({0.001, 0.002, 0.004, 0.0005});
  Doubles wanted;
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j) {
      std::int64_t total = bias.get_int(j);
      for (int c = 0; c < k; ++c) total += (x.get_int(i * k + c) - 3) * w.get_int(c * n + j);
      const auto scaled = tflite_scaled(static_cast<std::int32_t>(total), static_cast<std::int32_t>(multiplier.get_int(j)),
                                        static_cast<int>(shift.get_int(j)));
      wanted.push_back(std::clamp<std::int64_t>(scaled - 6, -128, 127));
    }
  EXPECT_EQ(values_of(computed({x, w, bias, multiplier, shift},
                               [](const Values& v) { return q_matmul(v[0], v[1], v[2], v[3], v[4], {.x_zero = 3, .out_zero = -6}); })),
            wanted);
}

TEST(IntegerInference, ConvPadsWithTheZeroPoint) {
  const int c = 2, h = 4, o = 3;
  const Array x = uniform(i8, {1, c, h, h}, -128, 127, 13), w = uniform(i8, {o, c, 3, 3}, -127, 127, 14),
              bias = uniform(i32, {o}, -500, 500, 15);
  const auto [multiplier, shift] = fixed_point_factors({0.001, 0.002, 0.004});
  Doubles wanted;
  for (int f = 0; f < o; ++f)
    for (int y = 0; y < h; ++y)
      for (int z = 0; z < h; ++z) {
        std::int64_t total = bias.get_int(f);
        for (int i = 0; i < c; ++i)
          for (int a = 0; a < 3; ++a)
            for (int b = 0; b < 3; ++b) {
              const int row = y + a - 1, column = z + b - 1;
              const bool inside = row >= 0 && row < h && column >= 0 && column < h;
              if (inside) total += (x.get_int((i * h + row) * h + column) + 7) * w.get_int(((f * c + i) * 3 + a) * 3 + b);
            }
        const auto scaled = tflite_scaled(static_cast<std::int32_t>(total), static_cast<std::int32_t>(multiplier.get_int(f)),
                                          static_cast<int>(shift.get_int(f)));
        wanted.push_back(std::clamp<std::int64_t>(scaled + 2, -128, 127));
      }
  ConvOptions options;
  options.padding_lo = options.padding_hi = {1, 1};
  const Array seen = computed({x, w, bias, multiplier, shift}, [&](const Values& v) {
    return q_conv(v[0], v[1], v[2], v[3], v[4], options, {.x_zero = -7, .out_zero = 2});
  });
  EXPECT_EQ(values_of(seen), wanted);
}

TEST(ScaledMatMul, GroupsOfCodesHaveTheirOwnScale) {
  const Array x = array_of(f32, {1, 4}, {1, 2, 3, 4}), codes = array_of(u4, {2, 4}, {1, 2, 3, 4, 15, 0, 8, 8});
  const Array scale = array_of(f32, {2, 2}, {0.5, 2, 1, 1}), zero = array_of(u4, {2, 2}, {1, 3, 8, 8});
  // Rows of W: 0, 0.5, 0, 2 and 7, -8, 0, 0.
  EXPECT_EQ(values_of(computed({x, codes, scale, zero}, [](const Values& v) { return dequant_matmul(v[0], v[1], v[2], v[3]); })),
            (Doubles{9, -9}));
}

TEST(ScaledMatMul, EightBitFloatsFillTheirRangeAndMultiplyBack) {
  const Array x = uniform(f32, {3, 8}, -5, 5, 16), w = uniform(f32, {2, 8}, -0.1, 0.1, 17);
  const auto results = run_all({x, w}, [](const Values& v) {
    const Values a = scaled_quantize(v[0], f8e4m3, {1}), b = scaled_quantize(v[1], f8e4m3, {1});
    return Values{scaled_matmul(a[0], b[0], a[1], reshape(b[1], {2})), reduce_max(abs(cast(a[0], f32)), {1})};
  });
  EXPECT_EQ(values_of(results[1]), (Doubles{448, 448, 448}));
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 2; ++j) {
      double total = 0, magnitude = 0;
      for (int k = 0; k < 8; ++k) {
        const double term = x.get_double(i * 8 + k) * w.get_double(j * 8 + k);
        total += term, magnitude += std::fabs(term);
      }
      EXPECT_NEAR(results[0].get_double(i * 2 + j), total,
                  magnitude / 7);  // two roundings to 3 bits after the point: 2 * 2^-4 of each term
    }
}

}  // namespace
}  // namespace rlx
