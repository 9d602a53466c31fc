// Compiled Fourier transforms beside their defining sums: lengths of every kind, axes at any place, real forms, any number of threads.
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <cstring>
#include <numbers>

#include "ops/values.h"
#include "rlx/ops.h"
#include "rlx/session.h"

namespace rlx::test {
namespace fourier_test {

using Wide = std::complex<long double>;

Session session_of(int threads) {
  SessionOptions options;
  options.threads = threads;
  return Session(Device::cpu(), options);
}

std::vector<Array> compiled(const std::vector<Array>& operands, const std::function<Values(const Values&)>& function, int threads = 2) {
  Graph graph;
  std::vector<Type> types;
  for (const Array& operand : operands) types.push_back(type_of(operand));
  const Values results = function(inputs_for(graph, types));
  for (std::size_t i = 0; i < results.size(); ++i) graph.output("y" + std::to_string(i), results[i]);
  std::map<std::string, Feed> feeds;
  for (const auto& [name, array] : named(operands)) feeds.emplace(name, array);
  const auto outputs = session_of(threads).compile(graph).run(feeds);
  std::vector<Array> all;
  for (std::size_t i = 0; i < results.size(); ++i) all.push_back(outputs.at("y" + std::to_string(i)));
  return all;
}

/// Of long lines some frequencies stand for all, at distances that no factor of their lengths divides.
std::vector<std::size_t> some_of(std::int64_t n) {
  std::vector<std::size_t> places;
  for (std::int64_t k = 0; k < n; k += n <= 300 ? 1 : 1 + n / 41) places.push_back(static_cast<std::size_t>(k));
  return places;
}

/// The defining sum of one line, at some frequencies below `count`.
std::vector<Wide> sums(const std::vector<Wide>& x, bool inverse, std::int64_t count) {
  const auto n = static_cast<std::int64_t>(x.size());
  std::vector<Wide> roots, y;
  for (std::int64_t k = 0; k < n; ++k)
    roots.push_back(
        std::polar(1.0L, (inverse ? 2 : -2) * std::numbers::pi_v<long double> * static_cast<long double>(k) / static_cast<long double>(n)));
  for (std::size_t k : some_of(count)) {
    long double re = 0, im = 0;
    std::size_t at = 0;
    for (const Wide& number : x) {
      const Wide root = roots[at];
      re += number.real() * root.real() - number.imag() * root.imag(), im += number.real() * root.imag() + number.imag() * root.real();
      at = (at + k) % x.size();
    }
    const long double scale = inverse ? static_cast<long double>(n) : 1;
    y.emplace_back(re / scale, im / scale);
  }
  return y;
}

std::vector<Wide> line_of(const Array& x, std::int64_t begin, std::int64_t stride, std::int64_t n) {
  std::vector<Wide> line;
  for (std::int64_t i = 0; i < n; ++i) {
    const auto number = is_complex(x.dtype()) ? x.get_complex(begin + i * stride) : std::complex<double>(x.get_double(begin + i * stride));
    line.emplace_back(number.real(), number.imag());
  }
  return line;
}

std::vector<Wide> some_of_line(const Array& x, std::int64_t begin, std::int64_t stride, std::int64_t n) {
  const std::vector<Wide> line = line_of(x, begin, stride, n);
  std::vector<Wide> some;
  for (std::size_t k : some_of(n)) some.push_back(line[k]);
  return some;
}

/// The root of the mean square of the difference, of that of what is wanted, in units of the type's rounding.
double distance(const std::vector<Wide>& seen, const std::vector<Wide>& wanted, DType type) {
  long double difference = 0, size = 0;
  for (std::size_t i = 0; i < seen.size(); ++i) difference += std::norm(seen[i] - wanted[i]), size += std::norm(wanted[i]);
  const double unit = type == c64 || type == f32 ? 0x1p-24 : 0x1p-53;
  return static_cast<double>(std::sqrt(difference / (size > 0 ? size : 1))) / unit;
}

/// Errors of roundings that are independent grow with the root of the number of passes; a length with a large prime factor takes three
/// transforms of twice the length. Both bounds hold for pocketfft, too.
double allowed(std::int64_t n) { return 2 + std::log2(static_cast<double>(n)) / 2; }

const std::int64_t lengths[] = {1,   2,   3,   4,   5,   6,   7,   8,   9,   11,  13,   16,   24,   31,   32,   61,   64,   67,   97,  100,
                                128, 143, 210, 256, 257, 360, 509, 512, 640, 720, 1000, 1009, 1024, 1331, 2048, 2187, 3125, 4096, 4099};

TEST(CompiledFourier, AgreesWithTheSumsAtEveryLength) {
  std::mt19937 random(1);
  for (DType type : {c64, c128})
    for (std::int64_t n : lengths) {
      const Array x = random_array({type, {n}}, -1, 1, random);
      const auto seen = compiled({x}, [](const Values& v) { return Values{fft(v[0]), fft(v[0], 0, true)}; });
      for (bool inverse : {false, true}) {
        const auto wanted = sums(line_of(x, 0, 1, n), inverse, n);
        EXPECT_LE(distance(some_of_line(seen[inverse], 0, 1, n), wanted, type), allowed(n)) << n << (inverse ? " inverse" : "");
      }
    }
}

TEST(CompiledFourier, RealFormsAgreeWithTheSumsAtEveryLength) {
  std::mt19937 random(2);
  for (DType type : {f32, f64})
    for (std::int64_t n : lengths) {
      const Array x = random_array({type, {n}}, -1, 1, random);
      const auto seen = compiled({x}, [&](const Values& v) { return Values{rfft(v[0]), irfft(rfft(v[0]), n)}; });
      const auto wanted = sums(line_of(x, 0, 1, n), false, n / 2 + 1);
      EXPECT_LE(distance(some_of_line(seen[0], 0, 1, n / 2 + 1), wanted, type), allowed(n)) << n;
      EXPECT_LE(distance(line_of(seen[1], 0, 1, n), line_of(x, 0, 1, n), type), 2 * allowed(n)) << n;
    }
}

TEST(CompiledFourier, TransformsAlongAnyAxis) {
  std::mt19937 random(3);
  struct Case {
    Dims shape;
    std::int64_t axis;
  };
  const Case cases[] = {{{5, 8, 3}, 0}, {{5, 8, 3}, 1},    {{2, 12, 37}, 1}, {{300, 3}, 0},
                        {{67, 20}, 0},  {{3, 2050, 2}, 1}, {{40, 6}, 1},     {{33, 300}, 1}};
  for (const auto& [shape, axis] : cases) {
    const Array x = random_array({f64, shape}, -1, 1, random), z = random_array({c64, shape}, -1, 1, random);
    const std::int64_t n = shape[static_cast<std::size_t>(axis)].value();
    std::int64_t stride = 1;
    for (auto d = static_cast<std::size_t>(axis) + 1; d < shape.size(); ++d) stride *= shape[d].value();
    const auto seen = compiled({x, z}, [&](const Values& v) {
      return Values{fft(v[1], axis), fft(v[1], axis, true), rfft(v[0], axis), irfft(rfft(v[0], axis), n, axis)};
    });
    const std::int64_t half = n / 2 + 1;
    for (std::int64_t line = 0; line < x.size() / n; ++line) {
      const std::int64_t begin = line / stride * n * stride + line % stride, of_half = line / stride * half * stride + line % stride;
      for (bool inverse : {false, true})
        EXPECT_LE(distance(some_of_line(seen[inverse], begin, stride, n), sums(line_of(z, begin, stride, n), inverse, n), c64), allowed(n));
      const auto wanted = sums(line_of(x, begin, stride, n), false, half);
      EXPECT_LE(distance(some_of_line(seen[2], of_half, stride, half), wanted, f64), allowed(n));
      EXPECT_LE(distance(line_of(seen[3], begin, stride, n), line_of(x, begin, stride, n), f64), 2 * allowed(n));
    }
  }
}

TEST(CompiledFourier, OfSeveralAxesIsOneAfterTheOther) {
  std::mt19937 random(4);
  const Array z = random_array({c128, {4, 6, 5}}, -1, 1, random);
  const auto seen = compiled(
      {z}, [](const Values& v) { return Values{fftn(v[0]), fft(fft(fft(v[0], 0), 1), 2), fftn(fftn(v[0], {-1, 0}), {0, 2}, true)}; });
  EXPECT_LE(difference(seen[0], seen[1]), 1e-13);
  EXPECT_LE(difference(seen[2], z), 1e-14);
}

TEST(CompiledFourier, HasTheSameBitsAtAnyNumberOfThreads) {
  std::mt19937 random(5);
  for (const Dims& shape : {Dims{1 << 15}, Dims{30000}, Dims{10007}, Dims{7, 4096}, Dims{50, 100}, Dims{128, 40}, Dims{3, 5003}}) {
    const Array x = random_array({f32, shape}, -1, 1, random), z = random_array({c64, shape}, -1, 1, random);
    const auto all = [&](const Values& v) {
      return Values{fft(v[1]), fft(v[1], 0, true), rfft(v[0]), irfft(v[1], 2 * v[1].dim(-1).value() - 2)};
    };
    const auto one = compiled({x, z}, all, 1);
    for (int threads : {2, 3}) {
      const auto several = compiled({x, z}, all, threads);
      for (std::size_t i = 0; i < one.size(); ++i)
        EXPECT_EQ(std::memcmp(one[i].bytes().data(), several[i].bytes().data(), one[i].bytes().size()), 0) << i << ", " << threads;
    }
  }
}

TEST(CompiledFourier, OfNothingIsNothing) {
  const auto seen = compiled({Array(c64, {0}), Array(c64, {0, 4}), Array(f32, {0, 4})},
                             [](const Values& v) { return Values{fft(v[0]), fft(v[1], 0), fft(v[1], 1), rfft(v[2], 1)}; });
  EXPECT_EQ(seen[0].shape(), (std::vector<std::int64_t>{0}));
  EXPECT_EQ(seen[1].shape(), (std::vector<std::int64_t>{0, 4}));
  EXPECT_EQ(seen[3].shape(), (std::vector<std::int64_t>{0, 3}));
  EXPECT_NE(error_of([] { run_all({Array(f32, {2, 0})}, [](const Values& v) { return Values{rfft(v[0])}; }); }).find("is empty"),
            std::string::npos);
}

}  // namespace fourier_test
}  // namespace rlx::test
