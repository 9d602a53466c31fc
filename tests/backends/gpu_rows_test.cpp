// Rows that the lanes of a group compute together on a GPU: reductions, norms, products with one row.
#include <cmath>

#include "backends/gpu_device.h"
#include "ops/values.h"
#include "rlx/ops.h"

namespace rlx::test {
namespace {

class GpuRows : public EachGpuTest {
 protected:
  static Array numbers(DType dtype, const std::vector<std::int64_t>& shape, unsigned seed) {
    Array all(dtype, shape);
    for (std::int64_t i = 0; i < all.size(); ++i) {
      seed = seed * 1664525U + 1013904223U;
      all.set_double(i, static_cast<double>(seed >> 8) / (1 << 23) - 1);
    }
    return all;
  }
  /// The graph's result there, and what it is in f64 on the CPU.
  void expect_close(const std::vector<Array>& operands, double tolerance, const std::function<Value(const Values&)>& function) const {
    const auto results = [&](const Device& device, bool wide) {
      Graph graph;
      std::map<std::string, Feed> fed;
      Values inputs;
      for (std::size_t i = 0; i < operands.size(); ++i) {
        const std::string name = "x" + std::to_string(i);
        const Value input = graph.input(name, type_of(operands[i]).shape, operands[i].dtype());
        inputs.push_back(wide ? cast(input, f64) : input);
        fed.emplace(name, operands[i]);
      }
      graph.output("y", function(inputs));
      return Session(device, {.cache_folder = std::filesystem::path()}).compile(graph).run(fed).at("y");
    };
    const Array seen = results(Device(backend()), false), wanted = results(Device::cpu(), true);
    ASSERT_EQ(seen.size(), wanted.size());
    for (std::int64_t i = 0; i < seen.size(); ++i)
      ASSERT_NEAR(seen.get_double(i), wanted.get_double(i), tolerance * (1 + std::abs(wanted.get_double(i)))) << "element " << i;
  }
};
INSTANTIATE_TEST_SUITE_P(EachVendor, GpuRows, testing::Values("cuda", "rocm"), [](const auto& info) { return std::string(info.param); });

// Rows of all kinds of lengths: a warp's and a group's, whole vectors and not, in registers and not.
constexpr std::pair<std::int64_t, std::int64_t> shapes[]{{3, 64}, {6, 100}, {2, 1024}, {5, 1023}, {1, 8192}, {2, 20000}, {2100, 70}};

TEST_P(GpuRows, OfSeveralReductionsAndElements) {
  for (const auto& [rows, length] : shapes) {
    SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(length));
    const Array x = numbers(f32, {rows, length}, 1), scale = numbers(f32, {length}, 2);
    expect_close({x}, 1e-6, [](const Values& in) { return softmax(in[0] * 4.0); });
    expect_close({x, scale}, 1e-5, [](const Values& in) { return layer_norm(in[0], in[1]); });
  }
}

TEST_P(GpuRows, OfOneReduction) {
  for (const auto& [rows, length] : shapes) {
    SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(length));
    const Array x = numbers(f32, {rows, length}, 3);
    expect_close({x}, 2e-7 * std::sqrt(static_cast<double>(length)), [](const Values& in) { return sum(in[0], {1}); });
    expect_close({x}, 0, [](const Values& in) { return reduce_max(in[0], {1}); });
    expect_close({x}, 0, [](const Values& in) { return argmax(in[0], 1); });
    expect_close({x}, 2e-7 * std::sqrt(static_cast<double>(length)), [](const Values& in) { return sum(in[0], {0, 1}); });
  }
}

TEST_P(GpuRows, OfNarrowNumbers) {
  for (const DType dtype : {bf16, f16})
    for (const auto& [rows, length] : {shapes[1], shapes[2], shapes[5]}) {
      SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(length));
      const Array x = numbers(dtype, {rows, length}, 4);
      expect_close({x}, 1e-2, [](const Values& in) { return rms_norm(in[0]); });
    }
}

TEST_P(GpuRows, OfAProductWithOneRow) {
  for (const DType dtype : {f32, bf16})
    for (const auto& [columns, depth] : {shapes[1], shapes[2], shapes[5], shapes[6]}) {
      SCOPED_TRACE(std::to_string(columns) + " x " + std::to_string(depth));
      const Array x = numbers(f32, {1, depth}, 5), w = numbers(dtype, {columns, depth}, 6);
      expect_close({x, w}, 1e-5, [](const Values& in) {
        const Value w = cast(in[1], in[0].dtype());
        return matmul(in[0], transpose(w, {1, 0}));
      });
    }
}

// Columns are neighbours in memory, so that lanes have one each, and parts of the depth.
TEST_P(GpuRows, OfAProductWithOneRowAndColumnsSideBySide) {
  for (const DType dtype : {f32, bf16}) {
    const Array x = numbers(dtype, {1, 2048}, 14), w = numbers(dtype, {2048, 96}, 15);
    expect_close({x, w}, dtype == f32 ? 1e-5 : 1e-2, [](const Values& in) { return matmul(in[0], in[1]); });
  }
}

TEST_P(GpuRows, OfAProductWithBlocks) {
  Array blocks(u8, {36, 8 * 144});
  unsigned seed = 9;
  for (std::int64_t i = 0; i < blocks.size(); ++i) {
    seed = seed * 1664525U + 1013904223U;
    blocks.set_int(i, i % 144 % 2 == 1 && i % 144 < 4 ? 20 : seed >> 24);  // scales, of which this is the upper half, are small
  }
  const Array x = numbers(f32, {1, 2048}, 10);
  expect_close({x, blocks}, 1e-5, [](const Values& in) {
    return in[0].dtype() == f32 ? block_dot(in[0], in[1], "Q4_K", false)
                                : matmul(in[0], transpose(cast(decode_blocks(cast(in[1], u8), "Q4_K"), f64), {1, 0}));
  });
}

// Of a norm, what of each 32 elements is the largest: a lane finds it, where the group has found the row's sum.
TEST_P(GpuRows, OfReductionsOfTheirElements) {
  for (const auto& [rows, length] : {shapes[4], std::pair<std::int64_t, std::int64_t>{3, 2048}}) {
    const Dims groups{rows, length / 32, 32};
    const auto largest = [&](const Values& in) { return reduce_max(abs(reshape(rms_norm(in[0]), groups)), {2}); };
    expect_close({numbers(f32, {rows, length}, 16)}, 1e-6, largest);
    Graph graph;
    graph.output("y", largest({graph.input("x", {rows, length}, f32)}));
    EXPECT_NE(session().compile(graph).dump(Stage::kernels).find(" = rlx_exchange("), std::string::npos);
  }
}

// One program, in which a run with one row is a kernel of its own.
TEST_P(GpuRows, OfAProductWithAsManyRowsAsARunHas) {
  constexpr std::int64_t depth = 256, columns = 72;
  const Array w = numbers(bf16, {columns, depth}, 13);
  Graph graph;
  const Value x = graph.input("x", {Dim::symbol("T", 64), depth}, f32), weights = graph.input("w", {columns, depth}, bf16);
  graph.output("y", matmul(x, transpose(cast(weights, f32), {1, 0})));
  Executable program = session().compile(graph);
  for (const std::int64_t rows : {1, 3, 1}) {
    const Array in = numbers(f32, {rows, depth}, static_cast<unsigned>(rows));
    const Array seen = program.run({{"x", in}, {"w", w}}).at("y");
    for (std::int64_t row = 0; row < rows; ++row)
      for (std::int64_t column = 0; column < columns; ++column) {
        double wanted = 0;
        for (std::int64_t k = 0; k < depth; ++k) wanted += in.get_double(row * depth + k) * w.get_double(column * depth + k);
        ASSERT_NEAR(seen.get_double(row * columns + column), wanted, 1e-4) << rows << ": " << row << ", " << column;
      }
  }
}

// Sums over the first axis and of all elements, in two steps.
TEST_P(GpuRows, OfManyTermsToFewResults) {
  const Array x = numbers(f32, {2048, 96}, 11);
  expect_close({x}, 1e-5, [](const Values& in) { return sum(in[0], {0}); });
  expect_close({x}, 1e-5, [](const Values& in) { return sum(in[0], {0, 1}); });
  expect_close({x}, 0, [](const Values& in) { return reduce_max(in[0], {0}); });
  expect_close({numbers(bf16, {70000}, 12)}, 1e-2, [](const Values& in) { return sum(in[0], {0}); });
}

TEST_P(GpuRows, ThatLieInTheMemoryOfTheResult) {
  const Array x = numbers(f32, {9, 256}, 7), y = numbers(f32, {9}, 8);
  expect_close({x, y}, 1e-5, [](const Values& in) { return exp(in[1]) + sum(in[0] * in[0], {1}); });
}

}  // namespace
}  // namespace rlx::test
