// Weights in blocks: the recorded bytes of each type of GGUF, as packages store them, are the recorded numbers, or as far off as reported.
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

CoreMlReport write_package(const Recorded& recorded, const CoreMlOptions& options, const std::filesystem::path& folder) {
  Graph graph;
  graph.output("y", add(graph.input("x", {1}, f32),
                        decode_blocks(graph.param("w", {recorded.blocks.shape()[0], recorded.blocks.shape()[1]}, u8), recorded.type)));
  const CoreMlReport report = export_coreml(folder / "model.mlpackage", {graph, {{"w", recorded.blocks}}}, options);
  std::filesystem::create_directories(folder / "in_1");
  save_npy(folder / "in_1" / "x.npy", Array(f32, {1}));
  return report;
}

double relative_error(const Array& seen, const Array& wanted) {
  double error = 0, all = 0;
  for (std::int64_t i = 0; i < wanted.size(); ++i) {
    error += std::pow(seen.get_double(i) - wanted.get_double(i), 2);
    all += std::pow(wanted.get_double(i), 2);
  }
  return std::sqrt(error / all);
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
  std::map<std::string, std::pair<Array, double>> wanted;  // and how far off the report says that it is
  for (const BlockFormat& format : block_formats()) {
    if (!is_recorded(format)) continue;
    const Recorded recorded(format);
    for (const auto& [name, options] : ways) {
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
  run_packages(folder.path());
  for (const auto& [key, expected] : wanted) {
    SCOPED_TRACE(key);
    ASSERT_FALSE(std::filesystem::exists(folder / key / "error.txt")) << read_text(folder / key / "error.txt");
    const double seen = relative_error(load_npy(folder / key / "out_1" / "y.npy"), expected.first);
    EXPECT_NEAR(seen, expected.second, 1e-4 * expected.second);
  }
}

}  // namespace
}  // namespace rlx::test
