// Weights in blocks: the recorded bytes of each type of GGUF, as packages store them, are the recorded numbers, or as far off as reported.
#include "cli/run_command.h"
#include "coreml/packages.h"
#include "fixture.h"
#include "formats/tensors/safetensors.h"
#include "message.h"
#include "quant/block_format.h"
#include "quant/block_parts.h"
#include "rlx/ops.h"

namespace rlx::test {
namespace {

/// Of one fixture: the blocks, and the values that gguf-py gives for them.
struct Recorded {
  explicit Recorded(const BlockFormat& format) : type(format.name) {
    std::string stem = type;
    std::ranges::transform(stem, stem.begin(), [](unsigned char c) { return std::tolower(c); });
    values = SafetensorsFile::open(fixture("gguf/" + stem + ".safetensors")).array("w");
    const std::int64_t row = 512;  // values: whole blocks of every type
    values = Array::of(f32, {values.size() / row, row}, values.floats());
    const std::string file = read_text(fixture("gguf/" + stem + ".gguf"));
    blocks = Array(u8, {values.shape()[0], row / format.values * format.bytes});
    for (std::int64_t i = 0; i < blocks.size(); ++i)
      blocks.set_int(i, static_cast<unsigned char>(file[file.size() - static_cast<std::size_t>(blocks.size() - i)]));
  }
  std::string type;
  Array values, blocks;
};

bool is_recorded(const BlockFormat& format) {
  return format.values > 1 && format.name != "Q8_1" && format.name != "Q8_K";  // of which no file of a model has tensors
}

bool fits_f16(const Array& values) {
  return std::ranges::all_of(values.floats(), [](float x) { return std::abs(x) <= 65504; });
}

struct Stored {
  std::string name;
  CoreMlOptions options;
};

CoreMlReport write_package(const Graph& graph, const Array& x, const Recorded& recorded, const CoreMlOptions& options,
                           const std::filesystem::path& folder) {
  const CoreMlReport report = export_coreml(folder / "model.mlpackage", {graph, {{"w", recorded.blocks}}}, options);
  std::filesystem::create_directories(folder / "in_1");
  save_npy(folder / "in_1" / "x.npy", x);
  return report;
}

Value decoded(Graph& graph, const Recorded& recorded) {
  return decode_blocks(graph.param("w", {recorded.blocks.shape()[0], recorded.blocks.shape()[1]}, u8), recorded.type);
}

CoreMlReport write_package(const Recorded& recorded, const CoreMlOptions& options, const std::filesystem::path& folder) {
  Graph graph;
  graph.output("y", add(graph.input("x", {1}, f32), decoded(graph, recorded)));
  return write_package(graph, Array(f32, {1}), recorded, options, folder);
}

/// The weights as products see them: the identity times their transpose.
CoreMlReport write_product(const Recorded& recorded, const CoreMlOptions& options, const std::filesystem::path& folder) {
  Graph graph;
  const std::int64_t columns = recorded.values.shape()[1];
  graph.output("y", dot(graph.input("x", {columns, columns}, f32), decoded(graph, recorded), {1}, {1}));
  Array identity(f32, {columns, columns});
  for (std::int64_t i = 0; i < columns; ++i) identity.set_double(i * columns + i, 1);
  return write_package(graph, identity, recorded, options, folder);
}

Array transposed(const Array& matrix) {
  const std::int64_t rows = matrix.shape()[0], columns = matrix.shape()[1];
  Array result(f32, {columns, rows});
  for (std::int64_t i = 0; i < matrix.size(); ++i) result.set_double(i % columns * rows + i / columns, matrix.get_double(i));
  return result;
}

/// What the project's own quantizer and decoder make of values.
Array quantized(const Array& values, const BlockFormat& format) {
  const std::vector<float> given = values.floats();
  std::vector<std::byte> blocks(given.size() / static_cast<std::size_t>(format.values) * static_cast<std::size_t>(format.bytes));
  std::vector<float> decoded(given.size());
  format.encode(given.data(), nullptr, blocks.data(), std::ssize(given));
  format.decode(blocks.data(), decoded.data(), std::ssize(decoded));
  return Array::of(f32, values.shape(), decoded);
}

double relative_error(const Array& seen, const Array& wanted) {
  double error = 0, all = 0;
  for (std::int64_t i = 0; i < wanted.size(); ++i) {
    error += std::pow(seen.get_double(i) - wanted.get_double(i), 2);
    all += std::pow(wanted.get_double(i), 2);
  }
  return std::sqrt(error / all);
}

/// By a package's folder its result, and how far off the report says that it is.
using WantedNumbers = std::map<std::string, std::pair<Array, double>>;

void expect_as_far_off(const TemporaryFolder& folder, const WantedNumbers& wanted) {
  run_packages(folder.path());
  for (const auto& [key, expected] : wanted) {
    SCOPED_TRACE(key);
    ASSERT_FALSE(std::filesystem::exists(folder / key / "error.txt")) << read_text(folder / key / "error.txt");
    const double seen = relative_error(load_npy(folder / key / "out_1" / "y.npy"), expected.first);
    EXPECT_NEAR(seen, expected.second, 1e-4 * expected.second);
  }
}

TEST(CoreMlBlocks, AreTheRecordedNumbersOrAsFarOffAsReported) {
  if (!has_coremltools()) GTEST_SKIP() << "no coremltools";
  const std::vector<Stored> ways{{"as_they_are", {}},
                                 {"nested", {.nested_scales = true}},
                                 {"26", {.minimum_target = 26}},
                                 {"26_nested", {.minimum_target = 26, .nested_scales = true}},
                                 {"requantized", {.block_types = {{"", "Q8_0"}}}},
                                 {"f16", {.block_types = {{"", "F16"}}}}};
  const TemporaryFolder folder;
  WantedNumbers wanted;
  for (const BlockFormat& format : block_formats()) {
    if (!is_recorded(format)) continue;
    const Recorded recorded(format);
    for (const auto& [name, options] : ways) {
      if (options.nested_scales && !find_block_parts(format.name)->scale_levels.unit) continue;  // an error
      const std::string key = recorded.type + "_" + name;
      if (name == "f16" && !fits_f16(recorded.values)) {
        EXPECT_NE(error_of([&] { write_package(recorded, options, folder / key); }).find("which f16 cannot hold"), std::string::npos);
        continue;
      }
      const CoreMlReport report = write_package(recorded, options, folder / key);
      ASSERT_EQ(report.weights.size(), 1U) << key;
      wanted.emplace(key, std::pair(recorded.values, report.weights[0].relative_error));
      EXPECT_EQ(report.weights[0].type, recorded.type);
      if (options.block_types.empty()) {
        EXPECT_EQ(report.weights[0].relative_error, 0) << key;
      }
    }
  }
  expect_as_far_off(folder, wanted);
}

/// Each type that weights may become has the numbers of the project's own quantizer, and the report has their distance.
TEST(CoreMlBlocks, OfAnotherTypeAreWhatTheQuantizerGives) {
  if (!has_coremltools()) GTEST_SKIP() << "no coremltools";
  const TemporaryFolder folder;
  const Recorded recorded(*find_block_format("Q8_0"));
  std::map<std::string, Array> wanted;
  for (const BlockFormat& format : block_formats()) {
    if (!find_block_parts(format.name)) continue;
    const std::string to(format.name);
    wanted.emplace(to, quantized(recorded.values, format));
    const CoreMlReport report = write_package(recorded, {.block_types = {{"Q8_0", to}}}, folder / to);
    ASSERT_EQ(report.weights.size(), 1U) << to;
    const double lost = to == "Q8_0" ? 0 : relative_error(wanted.at(to), recorded.values);
    EXPECT_NEAR(report.weights[0].relative_error, lost, 1e-6 * lost) << to;
  }
  EXPECT_GT(wanted.size(), 20U);
  run_packages(folder.path());
  for (const auto& [to, values] : wanted) {
    ASSERT_FALSE(std::filesystem::exists(folder / to / "error.txt")) << read_text(folder / to / "error.txt");
    EXPECT_EQ(relative_error(load_npy(folder / to / "out_1" / "y.npy"), to == "Q8_0" ? recorded.values : values), 0) << to;
  }
}

/// Of scales that f16 holds.
TEST(CoreMlBlocks, OfProductsInF16AreAsFarOffAsReported) {
  if (!has_coremltools()) GTEST_SKIP() << "no coremltools";
  const TemporaryFolder folder;
  WantedNumbers wanted;
  for (const BlockFormat& format : block_formats()) {
    if (!is_recorded(format)) continue;
    const Recorded recorded(format);
    const CoreMlReport report = write_product(recorded, {.precision = Precision::f16}, folder / recorded.type);
    ASSERT_EQ(report.weights.size(), 1U) << recorded.type;
    if (report.weights[0].form.find("f32 scales") != std::string::npos) {  // those of the recorded blocks do not fit f16
      EXPECT_EQ(report.weights[0].relative_error, 0) << recorded.type;
      continue;
    }
    wanted.emplace(recorded.type, std::pair(transposed(recorded.values), report.weights[0].relative_error));
  }
  EXPECT_GT(wanted.size(), 10U);
  expect_as_far_off(folder, wanted);
}

/// Products that take what was decoded as f16, as their sums do not go along the blocks; of any scales.
TEST(CoreMlBlocks, DecodedForProductsInF16AreAsFarOffAsReported) {
  if (!has_coremltools()) GTEST_SKIP() << "no coremltools";
  const TemporaryFolder folder;
  WantedNumbers wanted;
  for (const BlockFormat& format : block_formats()) {
    if (!is_recorded(format)) continue;
    const Recorded recorded(format);
    const std::int64_t rows = recorded.values.shape()[0];
    Graph graph;
    graph.output("y", dot(graph.input("x", {rows, rows}, f32), decoded(graph, recorded), {1}, {0}));
    Array identity(f32, {rows, rows});
    for (std::int64_t i = 0; i < rows; ++i) identity.set_double(i * rows + i, 1);
    const auto write = [&] { return write_package(graph, identity, recorded, {.precision = Precision::f16}, folder / recorded.type); };
    if (!fits_f16(recorded.values)) {
      EXPECT_NE(error_of(write).find("coreml: 'w': a weight is "), std::string::npos) << recorded.type;
      continue;
    }
    const CoreMlReport report = write();
    ASSERT_EQ(report.weights.size(), 1U) << recorded.type;
    wanted.emplace(recorded.type, std::pair(recorded.values, report.weights[0].relative_error));
  }
  EXPECT_GT(wanted.size(), 10U);
  expect_as_far_off(folder, wanted);
}

/// Numbers that become f16 are reported, too, and so are blocks that are decoded before.
TEST(CoreMlBlocks, NumbersInF16AreAsFarOffAsReported) {
  const TemporaryFolder folder;
  const Recorded recorded(*find_block_format("Q8_0"));
  const double off = relative_error(Array::of(f16, recorded.values.shape(), recorded.values.floats()), recorded.values);
  Graph graph;
  const std::vector<std::int64_t>& shape = recorded.values.shape();
  graph.output("y", matmul(graph.input("x", {1, shape[0]}, f32), graph.param("w", {shape[0], shape[1]}, f32)));
  const CoreMlReport of_floats = export_coreml(folder / "floats", {graph, {{"w", recorded.values}}}, {.precision = Precision::f16});
  const CoreMlReport of_blocks = write_product(recorded, {.minimum_target = 17, .precision = Precision::f16}, folder / "blocks");
  for (const CoreMlReport* report : {&of_floats, &of_blocks}) {
    ASSERT_EQ(report->weights.size(), 1U);
    EXPECT_EQ(report->weights[0].name, "w");
    EXPECT_EQ(report->weights[0].type, "f32");
    EXPECT_EQ(report->weights[0].form, "f16");
    EXPECT_NEAR(report->weights[0].relative_error, off, 1e-6 * off);
  }
  EXPECT_GT(off, 0);
  EXPECT_TRUE(export_coreml(folder / "wide", {graph, {{"w", recorded.values}}}, {}).weights.empty());
}

constexpr const char* read_and_multiplied = R"(graph net {{
  %x: f32[512,512] = input {{label="x"}}
  %places: i32[8,1] = input {{label="places"}}
  %w: u8[{0},{1}] = input {{label="w", role=param}}
  %all = decode_blocks(%w) {{type="{2}"}}
  %y = dot(%x, %all) {{lhs_contract=[1], rhs_contract=[1]}}
  %rows = gather(%all, %places) {{offset_dims=[1], collapsed_slice_dims=[0], start_index_map=[0], operand_batching_dims=[],
    start_indices_batching_dims=[], slice_sizes=[1,512], mode=clip, fill_value=0}}
  output y = %y
  output rows = %rows
}}
)";

/// By the command, beside numbers of block_minima.py: what it prints, rows that are read, and products.
TEST(CoreMlBlocks, WithMinimaInF16AreAsFarOffAsTheCommandSays) {
  if (!has_coremltools()) GTEST_SKIP() << "no coremltools";
  const TemporaryFolder folder, oracle;
  const std::filesystem::path script = std::filesystem::path(std::getenv("RLX_COREML_EVALUATOR")).parent_path() / "block_minima.py";
  const std::string command =
      fmt::format("'{}' '{}' '{}' '{}'", std::getenv("RLX_COREML_PYTHON"), script.string(), RLX_FIXTURES, oracle.path().string());
  ASSERT_EQ(std::system(command.c_str()), 0) << command;
  for (const char* name : {"q4_1", "q5_1", "q2_k", "q4_k", "q5_k"}) {
    const Recorded recorded(*find_block_format(name));
    const std::filesystem::path here = folder / name, out = here / "model.mlpackage";
    std::filesystem::create_directories(here / "in_1");
    Array places(i32, {8, 1}), identity(f32, {512, 512});
    for (std::int64_t i = 0; i < 8; ++i) places.set_int(i, i);
    for (std::int64_t i = 0; i < 512; ++i) identity.set_double(i * 512 + i, 1);
    save_npy(here / "in_1" / "places.npy", places);
    save_npy(here / "in_1" / "x.npy", identity);
    save_npy(here / "w.npy", recorded.blocks);
    write_text(here / "net.rlx", fmt::format(read_and_multiplied, recorded.blocks.shape()[0], recorded.blocks.shape()[1], recorded.type));
    const CommandResult result = run_rlx(fmt::format("export --target coreml {} {} --param w={} --precision f16", quoted(here / "net.rlx"),
                                                     quoted(out), quoted(here / "w.npy")));
    ASSERT_EQ(result.status, 0) << result.err;
    const double off = relative_error(load_npy(oracle / (std::string(name) + ".npy")), recorded.values);
    EXPECT_TRUE(result.out.starts_with(fmt::format("1 {} as ", recorded.type)) &&
                result.out.find(fmt::format(": relative error up to {:.2e} (w)", off)) != std::string::npos)
        << off << " off: " << result.out;
  }
  run_packages(folder.path());
  for (const char* name : {"q4_1", "q5_1", "q2_k", "q4_k", "q5_k"}) {
    SCOPED_TRACE(name);
    ASSERT_FALSE(std::filesystem::exists(folder / name / "error.txt")) << read_text(folder / name / "error.txt");
    const Array wanted = Array::of(f32, {8, 512}, load_npy(oracle / (std::string(name) + ".npy")).floats());
    EXPECT_EQ(relative_error(load_npy(folder / name / "out_1" / "rows.npy"), wanted), 0);
    EXPECT_EQ(relative_error(load_npy(folder / name / "out_1" / "y.npy"), transposed(wanted)), 0);
  }
}

}  // namespace
}  // namespace rlx::test
