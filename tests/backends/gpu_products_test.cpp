// Products by tiles on a GPU: all layouts of both operands, types, sizes that fill no tile, items, and what is computed from the result.
#include <cmath>

#include "backends/gpu_device.h"
#include "rlx/ops.h"

namespace rlx::test {
namespace {

/// Small numbers that are exact in every type.
Array numbers(DType dtype, const std::vector<std::int64_t>& shape, int seed) {
  Array all(dtype, shape);
  for (std::int64_t i = 0; i < all.size(); ++i) all.set_double(i, static_cast<double>((i * 7 + i / 5 * seed + seed) % 9 - 4) / 4);
  return all;
}

class GpuProducts : public EachGpuTest {
 protected:
  struct Shape {
    std::int64_t items, rows, columns, depth;
  };
  /// `a_along`, `b_along`: whether the depth is the last axis of an operand.
  void expect_product(const Session& session, DType dtype, const Shape& shape, bool a_along, bool b_along) const {
    const auto [items, rows, columns, depth] = shape;
    Graph graph;
    const std::vector<std::int64_t> a_shape = a_along ? std::vector{items, rows, depth} : std::vector{items, depth, rows};
    const std::vector<std::int64_t> b_shape = b_along ? std::vector{items, columns, depth} : std::vector{items, depth, columns};
    const Value a = graph.input("a", Dims(a_shape.begin(), a_shape.end()), dtype);
    const Value b = graph.input("b", Dims(b_shape.begin(), b_shape.end()), dtype);
    graph.output("y", dot(a, b, {a_along ? 2 : 1}, {b_along ? 2 : 1}, {0}, {0}));
    const Array x = numbers(dtype, a_shape, 3), z = numbers(dtype, b_shape, 5);
    const Array y = session.compile(graph).run({{"a", x}, {"b", z}}).at("y");
    int wrong = 0;
    for (std::int64_t i = 0; i < items; ++i)
      for (std::int64_t r = 0; r < rows; ++r)
        for (std::int64_t c = 0; c < columns; ++c) {
          double sum = 0;
          for (std::int64_t k = 0; k < depth; ++k)
            sum += x.get_double(i * rows * depth + (a_along ? r * depth + k : k * rows + r)) *
                   z.get_double(i * columns * depth + (b_along ? c * depth + k : k * columns + c));
          Array rounded(dtype, {1});
          rounded.set_double(0, sum);
          const double seen = y.get_double((i * rows + r) * columns + c), expected = rounded.get_double(0);
          if (!(seen == expected) && ++wrong <= 3)
            ADD_FAILURE() << name(dtype) << " " << rows << "x" << columns << "x" << depth << " " << a_along << b_along << " at " << i << ","
                          << r << "," << c << ": " << seen << ", expected " << expected;
        }
  }
};
INSTANTIATE_TEST_SUITE_P(EachVendor, GpuProducts, testing::Values("cuda", "rocm"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(GpuProducts, AreExactInAllLayouts) {
  for (const DType dtype : {f32, bf16})
    for (const bool a_along : {true, false})
      for (const bool b_along : {true, false}) expect_product(session(), dtype, {2, 136, 144, 72}, a_along, b_along);
  expect_product(session(), f16, {1, 136, 144, 72}, true, false);
}

TEST_P(GpuProducts, FillNoTile) {
  for (const DType dtype : {f32, bf16})
    for (const bool a_along : {true, false}) expect_product(session(), dtype, {1, 33, 67, 131}, a_along, !a_along);
}

/// By tiles of all widths.
TEST_P(GpuProducts, HaveFewColumns) {
  for (const std::int64_t columns : {40, 104})
    for (const bool b_along : {true, false}) expect_product(session(), bf16, {1, 136, columns, 136}, true, b_along);
}

/// Without what only Hopper has.
TEST_P(GpuProducts, AreExactOnOlderDevices) {
  const auto older = first_gpu_with([](gpu::DeviceFacts& facts) {
    gpu::Driver driver = *facts.driver;
    driver.EncodeBoxes = nullptr;
    facts.driver = std::make_shared<const gpu::Driver>(driver);
  });
  const Session session(Device(*older), {.cache_folder = std::filesystem::path()});
  for (const bool a_along : {true, false})
    for (const bool b_along : {true, false}) expect_product(session, bf16, {1, 136, 144, 72}, a_along, b_along);
  expect_product(session, f16, {1, 136, 144, 72}, true, false);
  for (const bool a_along : {true, false}) expect_product(session, bf16, {1, 20, 40, 264}, a_along, !a_along);  // by slices of the depth
}

TEST_P(GpuProducts, SumIntegersExactly) {
  constexpr std::int64_t rows = 37, columns = 50, depth = 134;
  Graph graph;
  const Value x = graph.input("x", {rows, depth}, i8), w = graph.input("w", {columns, depth}, i8);
  graph.output("y", cast(dot(cast(x, i32), cast(w, i32), {1}, {1}), f32) * 0.5);
  Array of_x(i8, {rows, depth}), of_w(i8, {columns, depth});
  for (std::int64_t i = 0; i < of_x.size(); ++i) of_x.set_double(i, static_cast<double>(i * 37 % 256 - 128));
  for (std::int64_t i = 0; i < of_w.size(); ++i) of_w.set_double(i, static_cast<double>(i * 91 % 256 - 128));
  const Array y = session().compile(graph).run({{"x", of_x}, {"w", of_w}}).at("y");
  int wrong = 0;
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < columns; ++c) {
      double sum = 0;
      for (std::int64_t k = 0; k < depth; ++k) sum += of_x.get_double(r * depth + k) * of_w.get_double(c * depth + k);
      wrong += y.get_double(r * columns + c) != sum / 2;
    }
  EXPECT_EQ(wrong, 0);
}

/// Of which one is widened for others too.
TEST_P(GpuProducts, ReadWhatIsWidened) {
  constexpr std::int64_t side = 80;
  Graph graph;
  const Value x = graph.input("x", {side, side}, bf16), w = graph.input("w", {side, side}, bf16), wide = cast(w, f32);
  graph.output("y", dot(cast(x, f32), wide, {1}, {0}));
  graph.output("wide", wide);
  const Array of_x = numbers(bf16, {side, side}, 3), of_w = numbers(bf16, {side, side}, 5);
  const Array y = session().compile(graph).run({{"x", of_x}, {"w", of_w}}).at("y");
  for (const std::int64_t r : {0, 33, 79})
    for (std::int64_t c = 0; c < side; ++c) {
      double sum = 0;
      for (std::int64_t k = 0; k < side; ++k) sum += of_x.get_double(r * side + k) * of_w.get_double(k * side + c);
      EXPECT_EQ(y.get_double(r * side + c), sum) << r << " " << c;
    }
}

/// A layer: gelu(x w + bias) + x, rounded.
TEST_P(GpuProducts, ComputeWhatFollows) {
  constexpr std::int64_t rows = 40, width = 64;
  Graph graph;
  const Dim m = Dim::symbol("m", 200);
  const Value x = graph.input("x", {m, width}, bf16), w = graph.input("w", {width, width}, bf16), bias = graph.input("bias", {width}, f32);
  const Value sum = cast(dot(x, w, {1}, {0}), f32) + bias;
  graph.output("y", cast(gelu(sum) + cast(x, f32), bf16));
  const Array of_x = numbers(bf16, {rows, width}, 3), of_w = numbers(bf16, {width, width}, 5), of_bias = numbers(f32, {width}, 2);
  const Executable program = session().compile(graph);
  const Array y = program.run({{"x", of_x}, {"w", of_w}, {"bias", of_bias}}).at("y");
  double most = 0;
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < width; ++c) {
      double total = 0;
      for (std::int64_t k = 0; k < width; ++k) total += of_x.get_double(r * width + k) * of_w.get_double(k * width + c);
      Array rounded(bf16, {1});
      rounded.set_double(0, total);
      const double z = rounded.get_double(0) + of_bias.get_double(c);
      const double expected = z * 0.5 * (1 + std::erf(z / std::sqrt(2.0))) + of_x.get_double(r * width + c);
      most = std::max(most, std::abs(y.get_double(r * width + c) - expected) / std::max(1.0, std::abs(expected)));
    }
  EXPECT_LT(most, 0x1p-8);
  EXPECT_EQ(program.profile({{"x", of_x}, {"w", of_w}, {"bias", of_bias}}, 1).size(), 1U);
}

TEST_P(GpuProducts, KeepInfinitiesAndNaN) {
  Graph graph;
  const Value a = graph.input("a", {32, 32}, bf16), b = graph.input("b", {32, 32}, bf16);
  graph.output("y", dot(a, b, {1}, {0}));
  Array x(bf16, {32, 32}), z(bf16, {32, 32});
  for (std::int64_t i = 0; i < 1024; ++i) x.set_double(i, 1), z.set_double(i, 1);
  x.set_double(3 * 32 + 5, INFINITY);
  z.set_double(7 * 32 + 9, NAN);
  const Array y = session().compile(graph).run({{"a", x}, {"b", z}}).at("y");
  EXPECT_TRUE(std::isinf(y.get_double(3 * 32 + 4)));
  EXPECT_TRUE(std::isnan(y.get_double(4 * 32 + 9)));
  EXPECT_EQ(y.get_double(4 * 32 + 4), 32);
}

}  // namespace
}  // namespace rlx::test
