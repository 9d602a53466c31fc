// Recurrent layers and spectra of signals: contracts that recordings do not show, and what is refused.
#include "ops/evaluated.h"

namespace rlx {
namespace {

using namespace test;

const Array x = uniform(f64, {3, 4, 2}, -1, 1, 1), w = uniform(f64, {12, 2}, -0.5, 0.5, 2), u = uniform(f64, {12, 3}, -0.5, 0.5, 3),
            h0 = uniform(f64, {1, 3, 3}, -1, 1, 4), c0 = uniform(f64, {1, 3, 3}, -1, 1, 5);

TEST(Recurrent, LengthsOutsideCountAsNoneAndAsAllSteps) {
  const auto results = run_all({x, w, u, h0, c0, array_of(i32, {3}, {-2, 0, 9})}, [](const Values& v) {
    Values all = lstm(v[0], {v[1], v[2]}, false, v[5], v[3], v[4]);
    for (Value whole : lstm(v[0], {v[1], v[2]}, false, {}, v[3], v[4])) all.push_back(whole);
    return all;
  });
  for (std::int64_t i = 0; i < 2 * 4 * 3; ++i) EXPECT_EQ(results[0].get_double(i), 0) << i;
  for (std::int64_t i = 2 * 4 * 3; i < 3 * 4 * 3; ++i) EXPECT_EQ(results[0].get_double(i), results[3].get_double(i)) << i;
  for (std::int64_t i = 0; i < 9; ++i) {
    EXPECT_EQ(results[1].get_double(i), i < 6 ? h0.get_double(i) : results[4].get_double(i)) << i;
    EXPECT_EQ(results[2].get_double(i), i < 6 ? c0.get_double(i) : results[5].get_double(i)) << i;
  }
}

TEST(Recurrent, ASequenceInTwoPartsGivesTheSameAsInOne) {
  const auto results = run_all({x, w, u}, [](const Values& v) {
    const Values whole = lstm(v[0], {v[1], v[2]}), first = lstm(slice_axis(v[0], 1, 0, 1), {v[1], v[2]}),
                 second = lstm(slice_axis(v[0], 1, 1, 4), {v[1], v[2]}, false, {}, first[1], first[2]);
    return Values{whole[0], concat({first[0], second[0]}, 1), whole[2], second[2]};
  });
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[2], results[3]);
}

TEST(Recurrent, SaysWhichOperandDoesNotFit) {
  Graph graph("test");
  const Value in = graph.input("x", {3, 4, 2}, f32), ih = graph.input("w", {12, 2}, f32), hh = graph.input("u", {12, 3}, f32);
  EXPECT_EQ(error_of([&] { lstm(in, {ih}); }), "rlx.lstm: 1 weights (allowed: 2 for each layer)");
  EXPECT_EQ(error_of([&] { lstm(in, {ih, ih}); }), "rlx.lstm: weight 0 of layer 0 is f32[12,2] (allowed: floats of shape [8,2])");
  EXPECT_EQ(error_of([&] { gru(in, {ih, hh}); }), "rlx.gru: weight 0 of layer 0 is f32[12,2] (allowed: floats of shape [9,2])");
  EXPECT_EQ(error_of([&] { lstm(in, {ih, hh}, false, hh); }), "rlx.lstm: the lengths are f32[12,3] (allowed: integers of shape [3])");
  EXPECT_EQ(error_of([&] { lstm(in, {ih, hh}, false, {}, in); }), "rlx.lstm: a first state is missing (allowed: all of them, or none)");
  EXPECT_EQ(error_of([&] { lstm(ih, {ih, hh}); }), "rlx.lstm: x is f32[12,2] (allowed: [b, s, features])");
}

TEST(Spectra, TheInverseGivesTheSignalBackAtEveryHop) {
  const Array signal = uniform(f64, {2, 41}, -1, 1, 6), window = uniform(f64, {9}, 0.5, 1, 7);
  for (std::int64_t hop : {1, 2, 4, 5, 9}) {
    const Array back = computed({signal, window}, [&](const Values& v) {
      return istft(stft(v[0], 9, hop, v[1]), 9, hop, v[1], 0, true, false, true, 36);  // the samples that every hop's frames cover
    });
    for (std::int64_t row = 0; row < 2; ++row)
      for (std::int64_t i = 0; i < 36; ++i) EXPECT_NEAR(back.get_double(row * 36 + i), signal.get_double(row * 41 + i), 1e-13) << hop;
  }
}

TEST(Spectra, WithoutAWindowOnesLieInTheMiddleOfAFrame) {
  const auto results = run_all({uniform(f64, {2, 23}, -1, 1, 8)}, [](const Values& v) {
    return Values{abs(stft(v[0], 8, 3, {}, 5)), abs(stft(v[0], 8, 3, full(v[0], {5}, 1, f64), 5))};
  });
  EXPECT_EQ(results[0], results[1]);
}

TEST(Spectra, SayWhatDoesNotFit) {
  Graph graph("test");
  const Value signal = graph.input("x", {7}, f32), window = graph.input("w", {5}, f32), z = graph.input("z", {4, 3}, c64);
  EXPECT_EQ(error_of([&] { stft(signal, 16); }), "rlx.stft: f32[7] is too short for n_fft 16 (allowed: 9 samples or more)");
  EXPECT_EQ(error_of([&] { stft(signal, 4, 1, window); }), "rlx.stft: the window is f32[5] (allowed: floats of shape [4])");
  EXPECT_EQ(error_of([&] { stft(signal, 4, std::int64_t{1} << 62); }),
            "rlx.stft: n_fft 4, hop 4611686018427387904, win_length 4 (allowed: 1 to 2147483648, win_length at most n_fft)");
  EXPECT_EQ(error_of([&] { istft(z, 8); }), "rlx.istft: c64[4,3] (allowed: complex [..., 5, frames] with a frame or more)");
  EXPECT_EQ(error_of([&] { log_mel(z, window); }), "rlx.log_mel: filters f32[5] for c64[4,3] (allowed: floats [mels, 4])");
  EXPECT_EQ(error_of([&] { welch_peaks(z, 6, 5); }), "rlx.welch_peaks: 5 peaks of 4 bins (allowed: 1..4)");
}

}  // namespace
}  // namespace rlx
