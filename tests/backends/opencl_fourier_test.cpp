// Fourier transforms in kernels of the device: lengths of every kind, real forms, sizes that are symbols.
#include <sstream>

#include "backends/opencl_beside_cpu.h"

namespace rlx::test {
namespace {

class OpenClFourier : public OpenClTest {};

/// Short and long, with small factors, a large one, one that only a longer transform computes, and with all of them.
TEST_F(OpenClFourier, TransformsEveryLength) {
  std::mt19937 random(1);
  std::vector<Array> operands;
  for (const Dims& shape : {Dims{2, 1}, Dims{2}, Dims{3}, Dims{33}, Dims{134}, Dims{1000}, Dims{1009}, Dims{2018}, Dims{3, 4096}})
    operands.push_back(random_array({c64, shape}, -1, 1, random));
  expect_cpu(backend(), operands, 8, [](const Values& x) {
    Values all;
    for (std::size_t i = 0; i < x.size(); ++i) all.push_back(fft(x[i], -1, i % 2 == 1));
    return all;
  });
}

TEST_F(OpenClFourier, HasDoublesAnyAxisAndRealForms) {
  std::mt19937 random(2);
  const std::vector<Array> operands{random_array({c128, {4, 1018, 2}}, -1, 1, random), random_array({f32, {3, 1009}}, -1, 1, random),
                                    random_array({f64, {40, 3}}, -1, 1, random), random_array({c64, {2, 31}}, -1, 1, random)};
  expect_cpu(backend(), operands, 8, [](const Values& x) {
    return Values{fft(x[0], 1, true), fftn(x[3]), rfft(x[1]), rfft(x[2], 0), irfft(x[3], 60), irfft(x[3], 61)};
  });
}

TEST_F(OpenClFourier, TakesLengthsThatAreSymbols) {
  std::mt19937 random(3);
  const Dim n = Dim::symbol("n", 100), rows = Dim::symbol("rows", 8);
  for (const std::int64_t length : {7, 64}) {
    const std::vector<Array> operands{random_array({c64, {length, 5}}, -1, 1, random)};
    expect_cpu(backend(), operands, 16, [](const Values& x) { return Values{fft(x[0], 0), fft(x[0], 0, true)}; }, {{c64, {n, 5}}});
  }
  const std::vector<Array> operands{random_array({c64, {3, 48}}, -1, 1, random)};
  expect_cpu(backend(), operands, 8, [](const Values& x) { return Values{fft(x[0])}; }, {{c64, {rows, 48}}});
}

/// Real and imaginary parts lie side by side in a result. A kernel that sums stores each by itself, else it computes no blocks.
TEST_F(OpenClFourier, SumsAreStoredAsNeighbours) {
  Graph graph;
  graph.output("y", fft(graph.input("x", {4, 48}, c64)));
  std::istringstream kernels(Session(Device(backend()), {.cache_folder = std::filesystem::path()}).compile(graph).dump(Stage::kernels));
  int sums = 0;
  bool reduces = false;
  for (std::string line; std::getline(kernels, line);) {
    if (line.starts_with("; ")) reduces = false;
    if (line.find("= reduce sum") != std::string::npos) reduces = true, ++sums;
    if (reduces && line.starts_with("  buffer")) {
      EXPECT_EQ(line.find("(2)*"), std::string::npos) << line;
    }
  }
  EXPECT_EQ(sums, 8);
}

}  // namespace
}  // namespace rlx::test
