// Products with weights in blocks: the kernels against the op's body, computed by the reference.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <thread>

#include "backends/block_cases.h"
#include "backends/cpu/gemm/aligned_buffer.h"
#include "backends/cpu/quantized/block_dot.h"
#include "backends/cpu/quantized/block_kernel.h"
#include "base/files/file_writer.h"
#include "base/files/mapped_file.h"
#include "base/small_float.h"
#include "ir/reference.h"
#include "quant/block_format.h"
#include "rlx/ops.h"
#include "rlx/session.h"

namespace rlx {
namespace block_dot_test {

Array random_weights(const BlockFormat& format, std::int64_t rows, std::int64_t depth) {
  const std::vector<std::byte> blocks = random_blocks(format, rows, depth);
  Array weights(u8, {rows, depth / format.values * format.bytes});
  std::copy(blocks.begin(), blocks.end(), weights.mutable_bytes().begin());
  return weights;
}

/// (rows, columns) = (rows, depth) x (columns, depth)^T
struct Case {
  std::int64_t rows, columns, depth;
};

/// Plain types hold one value a block; x is rounded for the others only.
bool is_plain(const BlockFormat& format) { return format.values == 1; }

Graph product(const Case& size, const BlockFormat& format) {
  Graph graph("block_dot");
  const Value x = graph.input("x", {size.rows, size.depth}, f32);
  const Value weights = graph.param("weights", {size.columns, size.depth / format.values * format.bytes}, u8);
  graph.output("y", block_dot(x, weights, std::string(format.name), !is_plain(format)));
  return graph;
}

/// The same of `matrices` matrices, chosen for each row.
Graph grouped_product(const Case& size, std::int64_t matrices, const BlockFormat& format) {
  Graph graph("grouped_block_dot");
  const Value x = graph.input("x", {size.rows, size.depth}, f32), expert = graph.input("expert", {size.rows}, i32);
  const Value weights = graph.param("weights", {matrices, size.columns, size.depth / format.values * format.bytes}, u8);
  graph.output("y", grouped_block_dot(x, weights, expert, std::string(format.name), !is_plain(format)));
  return graph;
}

class BlockTypes : public testing::TestWithParam<std::string_view> {};

TEST_P(BlockTypes, KernelsAgreeWithTheBody) {
  const BlockFormat& format = *find_block_format(GetParam());
  for (const Case size : {Case{1, 16, 256}, Case{3, 37, 512}, Case{16, 16, 768}, Case{33, 50, 256}, Case{18, 400, 2304}}) {
    const Graph graph = product(size, format);
    const std::vector<float> x = random_floats(size.rows * size.depth, 3);
    const Array weights = random_weights(format, size.columns, size.depth);
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
  const std::int64_t rows = 21, columns = 150, depth = 512;
  const std::vector<float> x = random_floats(rows * depth, 5);
  const Array weights = random_weights(format, columns, depth);
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

TEST_P(BlockTypes, GroupedProductsAgreeWithTheBody) {
  const BlockFormat& format = *find_block_format(GetParam());
  for (const auto& [size, matrices] : {std::pair{Case{1, 37, 256}, 3}, {Case{2, 150, 512}, 8}, {Case{70, 50, 2304}, 4}}) {
    const Graph graph = grouped_product(size, matrices, format);
    const std::vector<float> x = random_floats(size.rows * size.depth, 3);
    std::vector<std::int32_t> expert;  // -1 and one too many are clamped
    for (std::int32_t row = 0; row < size.rows; ++row) expert.push_back((row * row + 1) % (matrices + 2) - 1);
    const std::int64_t row_bytes = size.depth / format.values * format.bytes;
    const Array rows = random_weights(format, matrices * size.columns, size.depth);
    const Array weights(u8, {matrices, size.columns, row_bytes}, rows.bytes(), rows.owner());
    const auto run = [&](bool claims) {
      SessionOptions options;
      options.claims = claims;
      Executable executable = Session(Device::cpu(), options).compile(graph);
      executable.set_param("weights", weights);
      return executable.run({{"x", x}, {"expert", expert}}).at("y");
    };
    const Array claimed = run(true), body = run(false);
    for (std::int64_t i = 0; i < body.size(); ++i)  // as above
      ASSERT_NEAR(claimed.get_double(i), body.get_double(i), 1e-6 * static_cast<double>(size.depth)) << GetParam() << " element " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(WithKernels, BlockTypes,
                         testing::Values("Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q8_1", "Q8_K", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K",
                                         "IQ1_S", "IQ1_M", "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S", "IQ4_NL", "IQ4_XS", "TQ1_0",
                                         "TQ2_0", "MXFP4", "NVFP4"),
                         [](const auto& info) { return std::string(info.param); });
INSTANTIATE_TEST_SUITE_P(Widened, BlockTypes, testing::Values("F32", "F16", "BF16"),
                         [](const auto& info) { return std::string(info.param); });

/// Products one after the other, the last two of other rows.
Graph products(const std::vector<std::string>& types, std::int64_t rows, std::int64_t columns, std::int64_t depth) {
  Graph graph("block_dots");
  const Value x = graph.input("x", {rows, depth}, f32), z = graph.input("z", {rows, depth}, f32);
  for (std::size_t i = 0; i < types.size(); ++i) {
    const BlockFormat& format = *find_block_format(types[i]);
    const Value weights = graph.param(fmt::format("weights{}", i), {columns, depth / format.values * format.bytes}, u8);
    graph.output(fmt::format("y{}", i), block_dot(i + 2 < types.size() ? x : z, weights, types[i]));
  }
  return graph;
}

TEST(BlockDot, ProductsOfTheSameRowsAreThoseOfEachAlone) {
  const std::vector<std::string> types{"Q4_0", "Q4_0", "Q8_0", "Q4_K", "Q4_K", "Q2_K", "Q4_0", "Q4_0"};
  const std::int64_t rows = 5, columns = 32, depth = 512;
  const std::vector<float> x = random_floats(rows * depth, 3), z = random_floats(rows * depth, 4);
  Executable all = Session().compile(products(types, rows, columns, depth));
  std::vector<Array> weights;
  for (std::size_t i = 0; i < types.size(); ++i)
    all.set_param(fmt::format("weights{}", i), weights.emplace_back(random_weights(*find_block_format(types[i]), columns, depth)));
  for (int run = 0; run < 2; ++run) {
    const auto together = all.run({{"x", x}, {"z", z}});
    for (std::size_t i = 0; i < types.size(); ++i) {
      Executable one = Session().compile(product({rows, columns, depth}, *find_block_format(types[i])));
      one.set_param("weights", weights[i]);
      const Array alone = one.run({{"x", i + 2 < types.size() ? x : z}}).at("y"), among = together.at(fmt::format("y{}", i));
      EXPECT_TRUE(std::ranges::equal(alone.bytes(), among.bytes())) << i << ": " << types[i];
    }
  }
}

/// Of mixtures, with few rows and with many, whoever computes them.
TEST(BlockDot, GroupedProductsOfTheSameRowsAreThoseOfEachAlone) {
  const std::vector<std::string> types{"Q4_0", "Q6_K", "Q4_0"};
  const std::int64_t columns = 83, depth = 512, matrices = 5;
  for (const std::int64_t rows : {2, 60}) {
    const std::vector<float> x = random_floats(rows * depth, 3);
    std::vector<std::int32_t> expert;
    for (std::int32_t row = 0; row < rows; ++row) expert.push_back((row * row + 3) % static_cast<std::int32_t>(matrices));
    Graph graph("mixture");
    const Value in = graph.input("x", {rows, depth}, f32), chosen = graph.input("expert", {rows}, i32);
    std::vector<Array> weights;
    for (std::size_t i = 0; i < types.size(); ++i) {
      const BlockFormat& format = *find_block_format(types[i]);
      const Array all = random_weights(format, matrices * columns, depth);
      weights.emplace_back(u8, std::vector{matrices, columns, all.shape()[1]}, all.bytes(), all.owner());
      const Value parameter = graph.param(fmt::format("weights{}", i), {matrices, columns, all.shape()[1]}, u8);
      graph.output(fmt::format("y{}", i), grouped_block_dot(in, parameter, chosen, types[i]));
    }
    for (const int threads : {1, 3}) {
      SessionOptions options;
      options.threads = threads;
      Executable mixture = Session(Device::cpu(), options).compile(graph);
      for (std::size_t i = 0; i < types.size(); ++i) mixture.set_param(fmt::format("weights{}", i), weights[i]);
      for (int run = 0; run < 2; ++run) {
        const auto together = mixture.run({{"x", x}, {"expert", expert}});
        for (std::size_t i = 0; i < types.size(); ++i) {
          Executable one = Session().compile(grouped_product({rows, columns, depth}, matrices, *find_block_format(types[i])));
          one.set_param("weights", weights[i]);
          const Array alone = one.run({{"x", x}, {"expert", expert}}).at("y"), among = together.at(fmt::format("y{}", i));
          EXPECT_TRUE(std::ranges::equal(alone.bytes(), among.bytes())) << types[i] << ", " << rows << " rows, " << threads << " threads";
        }
      }
    }
  }
}

TEST(BlockDot, AValueThatIsNoNumberShows) {
  const BlockFormat& format = *find_block_format("Q8_0");
  std::vector<float> x = random_floats(64, 1);
  x[40] = std::numeric_limits<float>::quiet_NaN();
  Executable executable = Session().compile(product({1, 16, 64}, format));
  executable.set_param("weights", random_weights(format, 16, 64));
  const Array y = executable.run({{"x", x}}).at("y");
  for (std::int64_t i = 0; i < 16; ++i) EXPECT_FALSE(std::isfinite(y.get_double(i)));
}

/// Bytes of files that are mapped and in memory.
std::int64_t mapped_bytes_in_memory() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (std::int64_t kibibytes = 0; word == "RssFile:" && status >> kibibytes) return kibibytes * 1024;
  return -1;
}

TEST(BlockDot, WeightsOfAFileAreInMemoryOnce) {
  if (mapped_bytes_in_memory() < 0) GTEST_SKIP() << "the system does not say what is in memory";
  const std::int64_t rows = 8192, depth = 2048, row_bytes = depth / 32 * 34;
  const auto path = std::filesystem::path(testing::TempDir()) / fmt::format("rlx_blocks_{}", getpid());
  write_file(path, std::string(static_cast<std::size_t>(rows * row_bytes), '\1'));
  const auto file = std::make_shared<const MappedFile>(MappedFile::open(path));
  std::filesystem::remove(path);
  const std::int64_t before = mapped_bytes_in_memory(), size = rows * row_bytes;
  EXPECT_EQ(std::count(file->bytes().begin(), file->bytes().end(), std::byte{1}), size);
  ASSERT_GT(mapped_bytes_in_memory() - before, size * 9 / 10);
  Executable executable = Session().compile(product({1, rows, depth}, *find_block_format("Q8_0")));
  executable.set_param("weights", Array(u8, {rows, row_bytes}, file->bytes(), file));
  const std::vector<float> x(static_cast<std::size_t>(depth), 1);
  const Array y = executable.run({{"x", x}}).at("y");
  EXPECT_LT(mapped_bytes_in_memory() - before, size / 10);
  const double scale = decode(f16_format, 0x0101);
  for (std::int64_t i = 0; i < rows; i += 1000) EXPECT_NEAR(y.get_double(i), scale * static_cast<double>(depth), 1e-6 * scale * depth);
  EXPECT_EQ(std::count(file->bytes().begin(), file->bytes().end(), std::byte{1}), size) << "the file is read again where it is wanted";
}

/// Which worker packs each panel, and which multiplies with it: a kernel that does nothing but note that.
struct WorkersOfPanels {
  using ByPanel = std::map<const std::byte*, int>;  // by its address
  std::mutex mutex;
  ByPanel packed, multiplied;
  int threads = 0;
  std::atomic<std::int64_t> tiles{0};

  static inline WorkersOfPanels* current = nullptr;
  WorkersOfPanels() { current = this; }
  ~WorkersOfPanels() { current = nullptr; }

  void note(ByPanel& workers, const std::byte* panel) {
    const std::scoped_lock lock(mutex);
    EXPECT_TRUE(workers.emplace(panel, ThreadPool::worker()).second) << "twice";
  }
  /// All threads begin their next tiles together, so that none is done first and takes over what another has left.
  void keep_step() {
    const std::int64_t all = tiles++ / threads * threads + threads;
    const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (tiles < all && std::chrono::steady_clock::now() < patience) std::this_thread::yield();
  }

  static void pack(const std::byte* const*, std::int64_t, std::byte* scales, std::byte*) { current->note(current->packed, scales); }
  static void pack_rows(const cpu::RowFormat&, const float*, std::int64_t, int, std::int64_t, std::byte*) {}
  static void multiply(const std::byte* scales, const std::byte*, std::int64_t, const std::byte*, float*, std::int64_t) {
    current->keep_step();
    current->note(current->multiplied, scales);
  }
  static cpu::BlockKernel kernel() {
    cpu::BlockKernel noting;
    noting.type = "noting";
    noting.block_values = 32, noting.scale_bytes = 32, noting.code_bytes = 512;
    noting.pack_rows = pack_rows, noting.pack_panel = pack;
    noting.tiles[1] = multiply;
    return noting;
  }
};

/// So the pages of panels belong to the memory node of the worker that reads them.
TEST(BlockDot, PanelsArePackedByTheWorkerThatMultipliesThem) {
  const cpu::BlockKernel kernel = WorkersOfPanels::kernel();
  const std::int64_t depth = 1 << 14, row_bytes = depth / 32 * 34;  // a panel is worth a thread
  const std::vector<float> x(static_cast<std::size_t>(depth));
  for (int threads : {1, 2, 3}) {
    WorkersOfPanels seen;
    seen.threads = threads;
    ThreadPool pool(threads);
    const std::int64_t columns = threads * 2 * cpu::BlockKernel::columns;
    const std::vector<std::byte> blocks(static_cast<std::size_t>(columns * row_bytes));
    const cpu::BlockWeights weights{blocks.data(), row_bytes, 1, columns, depth};
    cpu::BlockPanels panels(kernel, weights);
    panels.pack(weights, pool);
    std::vector<float> c(static_cast<std::size_t>(columns));
    cpu::BlockDotArgs args;
    args.rows = cpu::RowGroups::one(1);
    args.x = x.data(), args.products = {{&panels, c.data()}};
    cpu::AlignedBuffer workspace(cpu::block_dot_workspace(args, threads));
    args.workspace = workspace.data();
    cpu::block_dot(args, pool);
    EXPECT_EQ(seen.packed.size(), static_cast<std::size_t>(threads * 2));
    EXPECT_EQ(seen.packed, seen.multiplied) << threads << " threads";
  }
}

TEST(BlockDot, RefusesWhatDoesNotFit) {
  Graph graph("g");
  const Value x = graph.input("x", {2, 64}, f32), blocks = graph.param("w", {4, 68}, u8);
  EXPECT_THROW(block_dot(x, blocks, "Q9_9"), Error);
  EXPECT_THROW(block_dot(x, blocks, "Q4_K"), Error);
  EXPECT_THROW(block_dot(x, graph.param("v", {4, 34}, u8), "Q8_0"), Error);
  const Value experts = graph.param("experts", {3, 4, 68}, u8), chosen = graph.input("chosen", {2}, i32);
  EXPECT_NO_THROW(grouped_block_dot(x, experts, chosen, "Q8_0"));
  EXPECT_THROW(grouped_block_dot(x, experts, chosen, "Q4_K"), Error);
  EXPECT_THROW(grouped_block_dot(x, blocks, chosen, "Q8_0"), Error);
  EXPECT_THROW(grouped_block_dot(x, experts, graph.input("three", {3}, i32), "Q8_0"), Error);
  EXPECT_THROW(grouped_block_dot(x, experts, graph.input("floats", {2}, f32), "Q8_0"), Error);
  EXPECT_THROW(grouped_block_dot(x, graph.param("plain", {3, 4, 128}, u8), chosen, "BF16", true), Error);
}

}  // namespace block_dot_test
}  // namespace rlx
