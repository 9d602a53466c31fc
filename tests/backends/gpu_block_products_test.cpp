// Products of several rows with weights in blocks on a GPU, whose tiles decode them on chip: all types, sizes that fill no tile.
#include <cmath>

#include "backends/block_cases.h"
#include "backends/gpu_device.h"
#include "rlx/ops.h"

namespace rlx::test {
namespace gpu_block_products_test {

struct Size {
  std::int64_t rows, columns, depth;
};

std::int64_t row_bytes(const BlockFormat& format, std::int64_t depth) { return depth / format.values * format.bytes; }

Array blocks_of(const BlockFormat& format, const Size& size) {
  const std::vector<std::byte> blocks = random_blocks(format, size.columns, size.depth);
  Array bytes(u8, {size.columns, row_bytes(format, size.depth)});
  std::ranges::copy(blocks, bytes.mutable_bytes().begin());
  return bytes;
}

Array numbers(DType dtype, const Size& size) {
  const std::vector<float> values = random_floats(size.rows * size.depth, 3);
  Array x(dtype, {size.rows, size.depth});
  for (std::int64_t i = 0; i < x.size(); ++i) x.set_double(i, values[static_cast<std::size_t>(i)]);
  return x;
}

/// Row r of what is seen, the product with `count` columns from `first` on: as sums in f64, up to 2^-16 of what is added, and what rounding
/// the result takes.
void expect_row(const BlockFormat& format, const Size& size, const Array& x, const Array& blocks, const Array& seen, std::int64_t r,
                std::int64_t first, std::int64_t count) {
  std::vector<float> w(static_cast<std::size_t>(size.columns * size.depth));
  format.decode(blocks.bytes().data(), w.data(), std::ssize(w));
  const double rounding = seen.dtype() == f32 ? 0 : seen.dtype() == f16 ? 0x1p-11 : 0x1p-8;
  for (std::int64_t c = 0; c < count; ++c) {
    double sum = 0, all = 0;
    for (std::int64_t k = 0; k < size.depth; ++k) {
      const double term = x.get_double(r * size.depth + k) * double{w[static_cast<std::size_t>((first + c) * size.depth + k)]};
      sum += term, all += std::abs(term);
    }
    ASSERT_NEAR(seen.get_double(r * count + c), sum, 0x1p-16 * all + rounding * std::abs(sum)) << format.name << " at " << r << ", " << c;
  }
}

void expect_product(const BlockFormat& format, const Size& size, const Array& x, const Array& blocks, const Array& seen) {
  for (std::int64_t r = 0; r < size.rows; ++r) expect_row(format, size, x, blocks, seen, r, 0, size.columns);
}

class GpuBlockProducts : public EachGpuTest {
 protected:
  void SetUp() override {
    EachGpuTest::SetUp();
    if (!IsSkipped() && std::string(GetParam()) == "rocm") GTEST_SKIP() << "has no matrix units here";
  }
  static void expect_products(const Session& session, const Size& size, DType dtype, const std::vector<std::string>& names) {
    Graph graph;
    const Value x = graph.input("x", {size.rows, size.depth}, dtype);
    std::map<std::string, Array> weights;
    for (const std::string& name : names) {
      const BlockFormat& format = *find_block_format(name);
      weights.emplace(name, blocks_of(format, size));
      graph.output("y_" + name, block_dot(x, graph.param(name, {size.columns, row_bytes(format, size.depth)}, u8), name, false));
    }
    Executable executable = session.compile(graph);
    EXPECT_NE(executable.dump(Stage::kernels).find("rlx_block_tile<"), std::string::npos);
    executable.set_params(weights);
    const Array in = numbers(dtype, size);
    const Outputs seen = executable.run({{"x", in}});
    for (const auto& [name, blocks] : weights) expect_product(*find_block_format(name), size, in, blocks, seen.at("y_" + name));
  }
};
INSTANTIATE_TEST_SUITE_P(EachVendor, GpuBlockProducts, testing::Values("cuda", "rocm"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(GpuBlockProducts, ReadEveryType) {
  std::vector<std::string> names;
  for (const BlockFormat& format : block_formats())
    if (format.values > 1) names.emplace_back(format.name);
  expect_products(session(), {18, 40, 512}, f32, names);
  expect_products(session(), {9, 72, 512}, f32, names);
}

TEST_P(GpuBlockProducts, FillNoTile) {
  expect_products(session(), {130, 67, 768}, f32, {"Q4_K", "Q6_K"});
  expect_products(session(), {33, 131, 96}, f32, {"Q4_0", "Q8_0"});
  expect_products(session(), {5, 131, 736}, f32, {"Q4_0", "Q8_0"});
}

TEST_P(GpuBlockProducts, ReadNarrowNumbers) {
  for (const DType dtype : {bf16, f16}) expect_products(session(), {20, 40, 512}, dtype, {"Q4_K"});
}

/// Rows by the matrix that each asks for: one that none does, and numbers beyond the last one.
TEST_P(GpuBlockProducts, HaveAMatrixForEachRow) {
  const BlockFormat& format = *find_block_format("Q6_K");
  constexpr std::int64_t matrices = 4;
  const Size size{1, 40, 512}, side_by_side{1, matrices * size.columns, size.depth};
  Graph graph;
  const Dim rows = Dim::symbol("T", 200);
  const Value x = graph.input("x", {rows, size.depth}, f32), number = graph.input("number", {rows}, i32);
  const Value w = graph.param("w", {matrices, size.columns, row_bytes(format, size.depth)}, u8);
  graph.output("y", grouped_block_dot(x, w, number, "Q6_K", false));
  Executable executable = session().compile(graph);
  const Array blocks = blocks_of(format, side_by_side);
  Array of_matrices(u8, {matrices, size.columns, row_bytes(format, size.depth)});
  std::ranges::copy(blocks.bytes(), of_matrices.mutable_bytes().begin());
  executable.set_param("w", of_matrices);
  for (const std::int64_t count : {3, 70, 150}) {
    const Array in = numbers(f32, {count, size.columns, size.depth});
    Array of_rows(i32, {count});
    for (std::int64_t r = 0; r < count; ++r) of_rows.set_int(r, r % 7 == 0 ? 9 : r % 5 == 2 ? 1 : 0);
    const Array seen = executable.run({{"x", in}, {"number", of_rows}}).at("y");
    for (std::int64_t r = 0; r < count; ++r) {
      const std::int64_t matrix = std::min<std::int64_t>(of_rows.get_int(r), matrices - 1);
      expect_row(format, side_by_side, in, blocks, seen, r, matrix * size.columns, size.columns);
    }
  }
}

/// Numbers of matrices that a node of several results finds.
TEST_P(GpuBlockProducts, HaveTheMatrixThatARowScoresHighest) {
  const BlockFormat& format = *find_block_format("Q4_K");
  const Size size{40, 64, 256};
  Graph graph;
  const Value x = graph.input("x", {size.rows, size.depth}, f32), scores = graph.input("scores", {size.rows, 2}, f32);
  const Value w = graph.input("w", {2, size.columns / 2, row_bytes(format, size.depth)}, u8);
  graph.output("y", grouped_block_dot(x, w, reshape(top_k(scores, 1)[1], {size.rows}), "Q4_K", false));
  const Array in = numbers(f32, size), blocks = blocks_of(format, size);
  Array of_matrices(u8, {2, size.columns / 2, row_bytes(format, size.depth)}), of_rows(f32, {size.rows, 2});
  std::ranges::copy(blocks.bytes(), of_matrices.mutable_bytes().begin());
  for (std::int64_t r = 0; r < size.rows; ++r) of_rows.set_double(2 * r + r % 2, 1);
  const Array seen = session().compile(graph).run({{"x", in}, {"scores", of_rows}, {"w", of_matrices}}).at("y");
  for (std::int64_t r = 0; r < size.rows; ++r) expect_row(format, size, in, blocks, seen, r, r % 2 * size.columns / 2, size.columns / 2);
}

/// Whose blocks begin anywhere.
TEST_P(GpuBlockProducts, AreTilesOfOneRow) { expect_products(session(), {1, 520, 512}, f32, {"Q6_K", "Q8_0", "Q4_0"}); }

/// With smaller tiles.
TEST_P(GpuBlockProducts, AreTheSameOnOlderDevices) {
  const auto older = first_gpu_with([](gpu::DeviceFacts& facts) {
    gpu::Driver driver = *facts.driver;
    driver.EncodeBoxes = nullptr;
    facts.driver = std::make_shared<const gpu::Driver>(driver);
  });
  expect_products(Session(Device(*older), {.cache_folder = std::filesystem::path()}), {70, 67, 512}, f32, {"Q4_K", "Q6_K"});
}

TEST_P(GpuBlockProducts, HaveAsManyRowsAsARunHas) {
  const BlockFormat& format = *find_block_format("Q4_K");
  const Size size{1, 72, 512};
  Graph graph;
  const Value x = graph.input("x", {Dim::symbol("T", 40), size.depth}, f32);
  graph.output("y", block_dot(x, graph.param("w", {size.columns, row_bytes(format, size.depth)}, u8), "Q4_K", false));
  Executable executable = session().compile(graph);
  const Array blocks = blocks_of(format, size);
  executable.set_param("w", blocks);
  for (const std::int64_t rows : {1, 2, 16, 17, 40}) {
    const Size of_run{rows, size.columns, size.depth};
    const Array in = numbers(f32, of_run);
    expect_product(format, of_run, in, blocks, executable.run({{"x", in}}).at("y"));
  }
}

}  // namespace gpu_block_products_test
}  // namespace rlx::test
