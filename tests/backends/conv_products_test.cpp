// Convolutions that products compute: windows read through tables of offsets, results whose positions lie side by side.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "ir/reference.h"
#include "rlx/ops.h"
#include "rlx/session.h"

namespace rlx {
namespace conv_products_test {

using Ints = std::vector<std::int64_t>;

Array random_array(DType t, Ints shape, unsigned seed) {
  Array array(t, std::move(shape));
  std::mt19937 bits(seed);
  for (std::int64_t i = 0; i < array.size(); ++i) array.set_double(i, std::uniform_real_distribution<double>(-1, 1)(bits));
  return array;
}

struct Case {
  std::string name;
  Ints x, w, strides, padding, dilation;
};

/// Runs of neighbours of every length in a panel of rows: whole images, lines longer and shorter than a panel, single positions.
const std::vector<Case>& cases() {
  static const std::vector<Case> all{
      {"1 x 1", {1, 20, 15, 17}, {33, 20, 1, 1}, {1}, {0}, {1}},
      {"1 x 1 of two images, strided", {2, 20, 14, 15}, {40, 20, 1, 1}, {2}, {0}, {1}},
      {"3 x 3", {1, 7, 30, 31}, {37, 7, 3, 3}, {1}, {1}, {1}},
      {"3 x 3 to one channel", {1, 16, 30, 31}, {1, 16, 3, 3}, {1}, {1}, {1}},
      {"3 x 3 of short lines", {3, 9, 5, 3}, {34, 9, 3, 3}, {1}, {1}, {1}},
      {"3 x 3, strided", {2, 6, 19, 24}, {20, 6, 3, 3}, {2}, {1}, {1}},
      {"strides, padding and dilation of each axis", {2, 5, 21, 26}, {35, 5, 3, 2}, {1, 3}, {2, 0}, {3, 2}},
      {"7 x 7, strided", {1, 3, 40, 40}, {16, 3, 7, 7}, {2}, {3}, {1}},
      {"patches", {2, 3, 32, 48}, {70, 3, 16, 16}, {16}, {0}, {1}},
      {"several passes over the depth", {1, 300, 6, 7}, {9, 300, 3, 3}, {1}, {1}, {1}},
      {"along one axis", {4, 8, 100}, {12, 8, 5}, {1}, {2}, {2}},
      {"along three axes", {1, 4, 6, 7, 8}, {11, 4, 2, 3, 2}, {1, 2, 1}, {1, 0, 1}, {1}},
  };
  return all;
}

/// Two normalized convolutions of the same input, added, as where a network's blocks change their width.
Value block(Graph& graph, Value x, Value w, const Case& c) {
  const auto per_channel = [&](unsigned seed) {
    Array values = random_array(x.dtype(), {c.w[0]}, seed);
    for (std::int64_t i = 0; i < c.w[0]; ++i) values.set_double(i, values.get_double(i) + 1.5);
    return graph.constant(values);
  };
  const Value y = conv(x, w * 0.75, c.strides, c.padding, c.dilation), z = conv(x, w * -0.5, c.strides, c.padding, c.dilation);
  return relu(batch_norm(y, per_channel(1), per_channel(2), per_channel(3), per_channel(4)) +
              batch_norm(z, per_channel(5), per_channel(6)));
}

std::ptrdiff_t products(const Executable& program, const Array& x) {
  const auto launches = program.profile({{"x", x}}, 0);
  return std::ranges::count_if(launches, [](const LaunchReport& launch) { return launch.kind == "claim"; });
}

class ConvProducts : public testing::TestWithParam<DType> {};

TEST_P(ConvProducts, MatchTheReference) {
  const DType t = GetParam();
  for (const Case& c : cases()) {
    Graph graph;
    const Value x = graph.input("x", Dims(c.x.begin(), c.x.end()), t), w = graph.param("w", Dims(c.w.begin(), c.w.end()), t);
    graph.output("plain", conv(x, w, c.strides, c.padding, c.dilation));
    graph.output("block", block(graph, x, w, c));
    const Array xs = random_array(t, c.x, 7), ws = random_array(t, c.w, 8);
    const std::vector<Array> wanted = evaluate(graph, {{"x", xs}, {"w", ws}});
    const double depth = static_cast<double>(ws.size()) / static_cast<double>(c.w[0]);
    // Terms of at most 1 with random signs: a sum of `depth` stays within 3 sqrt(depth), and so do its roundings, of half a unit of such a
    // number each and of random signs as well, 3 sqrt(depth) times one. The norms of a block multiply such errors by at most
    // 2.5 / sqrt(0.5) and 0.5 / sqrt(0.5), and round a few times themselves.
    const double tolerance = 9 * depth * (t == f32 ? 0x1p-24 : 0x1p-53);
    std::vector<Array> first;
    for (int threads : {1, 3}) {
      Executable program = Session(Device::cpu(), {.threads = threads, .cache_folder = {}}).compile(graph);
      program.set_param("w", ws);
      EXPECT_EQ(products(program, xs), 3) << c.name;
      const Outputs seen = program.run({{"x", xs}});
      for (std::size_t out = 0; out < 2; ++out) {
        for (std::int64_t i = 0; i < wanted[out].size(); ++i)
          ASSERT_NEAR(seen[out].get_double(i), wanted[out].get_double(i), tolerance * (out == 0 ? 1 : 8)) << c.name << " at " << i;
        if (threads == 1) first.push_back(seen[out]);
        else EXPECT_TRUE(std::ranges::equal(seen[out].bytes(), first[out].bytes())) << c.name << ": bits depend on threads";
      }
    }
  }
}

TEST(ConvWithoutProducts, GivesZeros) {
  for (const std::vector<Dims>& shapes : {std::vector<Dims>{{2, 8, 9}, {4, 8, 0}}, {{2, 8, 9, 9}, {4, 8, 3, 0}}, {{2, 0, 9}, {4, 0, 3}}}) {
    Graph graph;
    const Value x = graph.input("x", shapes[0], f32), w = graph.input("w", shapes[1], f32);
    graph.output("y", conv(x, w));
    const auto zeros = [](const Value& v) {
      Ints shape;
      for (const Dim& size : v.shape()) shape.push_back(size.value());
      return Array(f32, shape);
    };
    const std::map<std::string, Array> inputs{{"x", zeros(x)}, {"w", zeros(w)}};
    const Outputs seen = Session().compile(graph).run({inputs.begin(), inputs.end()});
    EXPECT_GT(seen[0].size(), 0);
    EXPECT_EQ(seen[0], evaluate(graph, inputs)[0]);
  }
}

INSTANTIATE_TEST_SUITE_P(Floats, ConvProducts, testing::Values(f32, f64));

}  // namespace conv_products_test
}  // namespace rlx
