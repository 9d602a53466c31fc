// Weights in blocks on an OpenCL device: they are decoded and multiplied there as they are, by kernels from the schemes of src/quant.
#include <cmath>
#include <limits>

#include "backends/block_cases.h"
#include "backends/opencl/memory.h"
#include "backends/opencl_device.h"
#include "ir/reference.h"
#include "rlx/ops.h"
#include "rlx/session.h"

namespace rlx::test {
namespace opencl_blocks_long_test {

/// Nothing is left to the host.
Session session_on(const Backend& backend) {
  SessionOptions options;
  options.cache_folder = std::filesystem::path();
  options.host = false;
  return Session(Device(backend), options);
}

Array bytes_of(std::span<const std::byte> blocks, std::vector<std::int64_t> shape) {
  Array bytes(u8, std::move(shape));
  std::ranges::copy(blocks, bytes.mutable_bytes().begin());
  return bytes;
}

std::int64_t row_bytes(const BlockFormat& format, std::int64_t depth) { return depth / format.values * format.bytes; }

class BlocksOnOpenCl : public OpenClTest {};

TEST_F(BlocksOnOpenCl, DecodesEveryTypeToTheSameBits) {
  constexpr std::int64_t rows = 3, depth = 768;
  Graph graph("decoded");
  std::map<std::string, Feed> fed;
  std::map<std::string, std::vector<float>> wanted;
  for (const BlockFormat& format : block_formats()) {
    const std::string name(format.name);
    const std::vector<std::byte> blocks = any_blocks(format, rows, depth);
    fed.emplace(name, bytes_of(blocks, {rows, row_bytes(format, depth)}));
    graph.output("y_" + name, decode_blocks(graph.input(name, {rows, row_bytes(format, depth)}, u8), name));
    std::vector<float>& values = wanted["y_" + name];
    values.resize(rows * depth);
    format.decode(blocks.data(), values.data(), rows * depth);
  }
  const Outputs seen = session_on(backend()).compile(graph).run(fed);
  for (const auto& [name, values] : wanted) {
    const std::vector<float> mine = seen.at(name).floats();
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (std::isnan(values[i]) && std::isnan(mine[i])) continue;
      if (mine[i] == 0 && std::abs(values[i]) < 0x1p-120F) continue;  // subnormal scales and values are zeros to kernels
      ASSERT_EQ(std::bit_cast<std::uint32_t>(mine[i]), std::bit_cast<std::uint32_t>(values[i]))
          << name << " element " << i << ": " << mine[i] << ", must be " << values[i];
    }
  }
}

/// Every output is near to that of the reference.
void expect_reference(const Graph& graph, const Outputs& seen, const std::map<std::string, Array>& inputs, std::int64_t depth) {
  const std::vector<Array> all = evaluate(graph, inputs);
  for (std::size_t output = 0; output < all.size(); ++output) {
    const std::string& name = graph.outputs()[output].first;
    const Array &mine = seen.at(name), &wanted = all[output];
    for (std::int64_t i = 0; i < wanted.size(); ++i)
      ASSERT_NEAR(mine.get_double(i), wanted.get_double(i),
                  1e-6 * std::abs(wanted.get_double(i)) + 2e-6 * std::sqrt(static_cast<double>(depth)))
          << name << " element " << i;
  }
}

/// (rows, columns) = (rows, depth) x (columns, depth)^T
struct Size {
  std::int64_t rows, columns, depth;
};

/// Products of all types in one program, with x as it is or rounded to 8 bits.
void expect_products(const Session& session, const Size& size, bool int8 = false) {
  Graph graph("products");
  const Value x = graph.input("x", {size.rows, size.depth}, f32);
  std::map<std::string, Array> params;
  for (const BlockFormat& format : block_formats()) {
    if (format.values == 1 || (int8 && format.values % 32 != 0)) continue;
    const std::string name(format.name);
    const std::vector<std::byte> blocks = random_blocks(format, size.columns, size.depth);
    params.emplace(name, bytes_of(blocks, {size.columns, row_bytes(format, size.depth)}));
    graph.output("y_" + name, block_dot(x, graph.param(name, {size.columns, row_bytes(format, size.depth)}, u8), name, int8));
  }
  const Array values = Array::of<float>({size.rows, size.depth}, random_floats(size.rows * size.depth, 3));
  Executable executable = session.compile(graph);
  executable.set_params(params);
  const Outputs seen = executable.run({{"x", values}});
  std::map<std::string, Array> all = params;
  all.emplace("x", values);
  expect_reference(graph, seen, all, size.depth);
}

TEST_F(BlocksOnOpenCl, MultipliesOneRowByEveryType) { expect_products(session_on(backend()), {1, 48, 512}); }
TEST_F(BlocksOnOpenCl, MultipliesRowsThatFillNoBlockOfThem) { expect_products(session_on(backend()), {11, 37, 256}); }

TEST_F(BlocksOnOpenCl, MultipliesOneRowOfCodesByEveryType) { expect_products(session_on(backend()), {1, 48, 512}, true); }
TEST_F(BlocksOnOpenCl, MultipliesRowsOfCodesThatFillNoBlockOfThem) { expect_products(session_on(backend()), {11, 37, 256}, true); }

/// The codes of a group are numbers that say nothing where its largest number is 0, infinite or NaN.
TEST_F(BlocksOnOpenCl, GroupsWithoutAScaleAreWhatTheyAreElsewhere) {
  constexpr std::int64_t rows = 4, depth = 64;
  const BlockFormat& format = *find_block_format("Q4_0");
  std::vector<float> values = random_floats(rows * depth, 3);
  std::fill_n(values.begin(), 32, 0.0F);
  values[depth + 5] = std::numeric_limits<float>::infinity();
  values[2 * depth + 40] = std::numeric_limits<float>::quiet_NaN();
  Graph graph("products");
  graph.output("y", block_dot(graph.input("x", {rows, depth}, f32), graph.param("w", {16, row_bytes(format, depth)}, u8), "Q4_0", true));
  std::map<std::string, Array> all{{"w", bytes_of(random_blocks(format, 16, depth), {16, row_bytes(format, depth)})}};
  Executable executable = session_on(backend()).compile(graph);
  executable.set_params(all);
  all.emplace("x", Array::of<float>({rows, depth}, values));
  const std::vector<float> seen = executable.run({{"x", all.at("x")}}).at("y").floats(), wanted = evaluate(graph, all)[0].floats();
  for (std::size_t i = 0; i < wanted.size(); ++i)
    EXPECT_TRUE(std::isnan(wanted[i]) ? std::isnan(seen[i]) : std::abs(seen[i] - wanted[i]) < 1e-5)
        << i << ": " << seen[i] << ", " << wanted[i];
}

TEST_F(BlocksOnOpenCl, MultipliesAsManyRowsAsARunHas) {
  Graph graph("products");
  const BlockFormat& format = *find_block_format("Q4_K");
  const Value x = graph.input("x", {Dim::symbol("T", 40), 512}, f32);
  graph.output("y", block_dot(x, graph.param("w", {80, row_bytes(format, 512)}, u8), "Q4_K", false));
  const Array blocks = bytes_of(random_blocks(format, 80, 512), {80, row_bytes(format, 512)});
  Executable executable = session_on(backend()).compile(graph);
  executable.set_param("w", blocks);
  for (const std::int64_t rows : {1, 2, 8, 9, 40}) {
    const Array values = Array::of<float>({rows, 512}, random_floats(rows * 512, 3));
    expect_reference(graph, executable.run({{"x", values}}), {{"x", values}, {"w", blocks}}, 512);
  }
}

TEST_F(BlocksOnOpenCl, MultipliesByTheMatrixThatARowAsksFor) {
  Graph graph("experts");
  const Value x = graph.input("x", {5, 256}, f32), expert = graph.input("expert", {5}, i32);
  std::map<std::string, Array> all;
  for (const std::string_view type : {"Q8_0", "Q5_K", "IQ2_XS"}) {
    const BlockFormat& format = *find_block_format(type);
    const std::string name(type);
    const std::vector<std::int64_t> shape{3, 40, row_bytes(format, 256)};
    all.emplace(name, bytes_of(random_blocks(format, 120, 256), shape));
    graph.output("y_" + name, grouped_block_dot(x, graph.param(name, {3, 40, shape[2]}, u8), expert, name, false));
  }
  Executable executable = session_on(backend()).compile(graph);
  executable.set_params(all);
  const Array values = Array::of<float>({5, 256}, random_floats(5 * 256, 3));
  Array experts(i32, {5});
  for (int i = 0; i < 5; ++i) experts.set_int(i, (i * 2) % 5 - 1);  // some outside, which are clamped
  all.emplace("x", values), all.emplace("expert", experts);
  expect_reference(graph, executable.run({{"x", values}, {"expert", experts}}), all, 256);
}

/// Of a table that is looked up and multiplied, too.
TEST_F(BlocksOnOpenCl, WeightsTakeTheMemoryThatTheyHaveInTheFile) {
  Graph graph("held");
  const BlockFormat& format = *find_block_format("Q4_0");
  const std::int64_t columns = 4090, depth = 1024, bytes = row_bytes(format, depth);
  const Value w = graph.param("w", {columns, bytes}, u8);
  graph.output("y", block_dot(graph.input("x", {1, depth}, f32), w, "Q4_0", false));
  graph.output("rows", decode_blocks(take(w, graph.input("ids", {3}, i32)), "Q4_0"));
  const auto in_use = [&] { return dynamic_cast<const opencl::Memory&>(memory()).bytes_in_use(); };
  const std::int64_t before = in_use();
  Executable executable = session_on(backend()).compile(graph);
  std::map<std::string, Array> all{{"w", bytes_of(random_blocks(format, columns, depth), {columns, bytes})}};
  executable.set_params(all);
  all.emplace("x", Array::of<float>({1, depth}, random_floats(depth, 3)));
  all.emplace("ids", Array(i32, {3}));
  for (int i = 0; i < 3; ++i) all.at("ids").set_int(i, 2000 * i);
  for (int run = 0; run < 2; ++run) expect_reference(graph, executable.run({{"x", all.at("x")}, {"ids", all.at("ids")}}), all, depth);
  memory().finish();
  EXPECT_GE(in_use() - before, columns * bytes);
  EXPECT_LE(in_use() - before, columns * bytes + (1 << 20));
}

/// Codes that a graph itself has, of which a group has one scale or each place in a group one.
void expect_given_codes(const Session& session, const Dims& scales) {
  constexpr std::int64_t rows = 3, depth = 256;
  const BlockFormat& format = *find_block_format("Q4_K");
  Graph graph("codes");
  const Value codes = cast(graph.input("codes", {rows, depth / 32, 32}, i8), f32);
  const Value x = reshape(codes * graph.input("scales", scales, f32), {rows, depth});
  graph.output("y", block_dot(x, graph.param("w", {32, row_bytes(format, depth)}, u8), "Q4_K", false));
  Array values(i8, {rows, depth / 32, 32});
  for (std::int64_t i = 0; i < values.size(); ++i) values.set_int(i, i * 37 % 256 - 128);
  std::vector<std::int64_t> shape;
  for (const Dim& size : scales) shape.push_back(size.value());
  const Array factors = Array::of<float>(shape, random_floats(shape[0] * shape[1] * shape[2], 5));
  std::map<std::string, Array> all{{"w", bytes_of(random_blocks(format, 32, depth), {32, row_bytes(format, depth)})}};
  Executable executable = session.compile(graph);
  executable.set_params(all);
  all.emplace("codes", values), all.emplace("scales", factors);
  const std::vector<float> seen = executable.run({{"codes", values}, {"scales", factors}}).at("y").floats();
  const std::vector<float> wanted = evaluate(graph, all)[0].floats();
  // Terms of up to 128, of which the sum of the absolute values is rounded a few times.
  for (std::size_t i = 0; i < wanted.size(); ++i) ASSERT_NEAR(seen[i], wanted[i], 2e-6 * 128 * std::sqrt(depth)) << i;
}

TEST_F(BlocksOnOpenCl, MultipliesCodesOfTheGraph) {
  const auto gpu = first_device_with([](opencl::DeviceFacts& facts) { facts.is_cpu = false; });
  for (const Session& session : {session_on(backend()), session_on(*gpu)})
    for (const Dims& scales : {Dims{3, 8, 1}, Dims{3, 1, 32}}) expect_given_codes(session, scales);
}

/// As GPUs get them: a lane computes one result.
TEST_F(BlocksOnOpenCl, ScalarLanesReadBlocksAsTheyAre) {
  const auto gpu = first_device_with([](opencl::DeviceFacts& facts) { facts.is_cpu = false; });
  expect_products(session_on(*gpu), {3, 19, 256});
}

}  // namespace opencl_blocks_long_test
}  // namespace rlx::test
