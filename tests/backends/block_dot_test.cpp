// Products with weights in blocks: the kernels against the op's body, computed by the reference.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "backends/cpu/quantised/block_kernel.h"
#include "ir/reference.h"
#include "quant/format.h"
#include "rlx/ops.h"
#include "rlx/session.h"

namespace rlx {
namespace {

std::vector<float> random_values(std::int64_t count, std::uint32_t seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = normal(engine);
  return values;
}

/// Blocks of any bits, but that their largest value is neither tiny nor huge.
Array random_blocks(const BlockFormat& format, std::int64_t rows, std::int64_t depth) {
  std::mt19937 engine(7);
  Array blocks(u8, {rows, depth / format.values * format.bytes});
  std::vector<float> values(static_cast<std::size_t>(format.values));
  const auto is_fair = [&](const std::byte* block) {
    format.decode(block, values.data(), format.values);
    float largest = 0;
    for (float value : values) largest = std::isfinite(value) ? std::max(largest, std::abs(value)) : INFINITY;
    return largest > 0.01F && largest < 10;
  };
  for (std::int64_t at = 0; at < blocks.size(); at += format.bytes) {
    std::byte* const block = blocks.mutable_bytes().data() + at;
    do std::generate_n(block, format.bytes, [&] { return static_cast<std::byte>(engine()); });
    while (!is_fair(block));
  }
  return blocks;
}

/// (rows, columns) = (rows, depth) x (columns, depth)^T
struct Case {
  std::int64_t rows, columns, depth;
};

Graph product(const Case& size, const BlockFormat& format) {
  Graph graph("block_dot");
  const Value x = graph.input("x", {size.rows, size.depth}, f32);
  const Value weights = graph.param("weights", {size.columns, size.depth / format.values * format.bytes}, u8);
  graph.output("y", block_dot(x, weights, std::string(format.name)));
  return graph;
}

class BlockTypes : public testing::TestWithParam<std::string_view> {};

TEST_P(BlockTypes, KernelsAgreeWithTheBody) {
  const BlockFormat& format = *find_block_format(GetParam());
  for (const Case size : {Case{1, 16, 256}, Case{3, 37, 512}, Case{16, 16, 768}, Case{33, 50, 256}}) {
    const Graph graph = product(size, format);
    const std::vector<float> x = random_values(size.rows * size.depth, 3);
    const Array weights = random_blocks(format, size.columns, size.depth);
    const auto run = [&](bool claims) {
      SessionOptions options;
      options.claims = claims;
      Executable executable = Session(Device::cpu(), options).compile(graph);
      executable.set_param("weights", weights);
      return executable.run({{"x", x}}).at("y");
    };
    const Array claimed = run(true), body = run(false);
    for (std::int64_t i = 0; i < body.size(); ++i)
      // Both sum the same products of f32 in their own orders; of values around 1 they keep an absolute error of 1e-6 for each root of
      // depth.
      ASSERT_NEAR(claimed.get_double(i), body.get_double(i), 1e-6 * static_cast<double>(size.depth)) << GetParam() << " element " << i;
  }
}

TEST_P(BlockTypes, ARowHasTheSameBitsAloneAndAmongOthers) {
  const BlockFormat& format = *find_block_format(GetParam());
  const std::int64_t rows = 21, columns = 35, depth = 512;
  const std::vector<float> x = random_values(rows * depth, 5);
  const Array weights = random_blocks(format, columns, depth);
  const auto run = [&](std::int64_t first, std::int64_t count) {
    Executable executable = Session().compile(product({count, columns, depth}, format));
    executable.set_param("weights", weights);
    return executable.run({{"x", std::span(x).subspan(static_cast<std::size_t>(first * depth), static_cast<std::size_t>(count * depth))}})
        .at("y");
  };
  const Array together = run(0, rows);
  for (std::int64_t row : {0, 7, 16, 20}) {
    const Array alone = run(row, 1);
    for (std::int64_t column = 0; column < columns; ++column)
      ASSERT_EQ(alone.get_double(column), together.get_double(row * columns + column)) << GetParam() << " row " << row;
  }
}

INSTANTIATE_TEST_SUITE_P(All, BlockTypes,
                         testing::Values("Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q4_K", "Q5_K", "Q6_K", "IQ4_NL", "IQ4_XS", "MXFP4"),
                         [](const auto& info) { return std::string(info.param); });

TEST(BlockDot, AValueThatIsNoNumberShows) {
  const BlockFormat& format = *find_block_format("Q8_0");
  std::vector<float> x = random_values(64, 1);
  x[40] = std::numeric_limits<float>::quiet_NaN();
  Executable executable = Session().compile(product({1, 16, 64}, format));
  executable.set_param("weights", random_blocks(format, 16, 64));
  const Array y = executable.run({{"x", x}}).at("y");
  for (std::int64_t i = 0; i < 16; ++i) EXPECT_FALSE(std::isfinite(y.get_double(i)));
}

TEST(BlockDot, RefusesWhatDoesNotFit) {
  Graph graph("g");
  const Value x = graph.input("x", {2, 64}, f32), blocks = graph.param("w", {4, 68}, u8);
  EXPECT_THROW(block_dot(x, blocks, "Q9_9"), Error);
  EXPECT_THROW(block_dot(x, blocks, "Q4_K"), Error);
  EXPECT_THROW(block_dot(x, graph.param("v", {4, 34}, u8), "Q8_0"), Error);
}

}  // namespace
}  // namespace rlx
