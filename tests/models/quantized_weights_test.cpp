// Folders with quantized matrices, against the values that the definitions of their layouts give (fixtures/quantized/make_fixtures.py).
#include <algorithm>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <set>
#include <thread>

#include <gtest/gtest.h>

#include "base/half.h"
#include "fixture.h"
#include "formats/json/json.h"
#include "formats/temporary_folder.h"
#include "models/api/model_summary.h"
#include "models/conversion/dense_model.h"
#include "models/conversion/folder_source.h"
#include "models/conversion/quantize_model.h"
#include "models/run/recorded_run.h"
#include "models/weights/quantized/folder_weights.h"
#include "models/weights/weights.h"
#include "rlx/model.h"
#include "rlx/session.h"

namespace rlx {
namespace {

using test::error_of;
using test::fixture;
using test::TemporaryFolder;
using test::write_text;

json::Value described_cases() { return json::read_file(fixture("quantized/cases.json")); }

/// A folder with the layer of one case: its config, and its tensors under the name "layer".
class QuantizedLayer {
 public:
  explicit QuantizedLayer(const std::string& name) : config(described_cases().at(name).at("config")) {
    const SafetensorsFile all = SafetensorsFile::open(fixture("quantized/matrices.safetensors"));
    for (const TensorView& tensor : all.tensors()) {
      if (!tensor.name.starts_with(name + ".")) continue;
      const Array array = all.array(tensor.name);
      const std::string part = tensor.name.substr(name.size() + 1);
      if (part == "expected") expected = array;
      else parts.emplace("layer." + part, array);
    }
  }

  Checkpoint open() const {
    std::vector<TensorView> views;
    for (const auto& [name, array] : parts) views.push_back(view_of(name, array));
    write_safetensors(folder_ / "model.safetensors", views);
    write_text(folder_ / "config.json", json::Value{{"quantization_config", config}}.dump());
    return open_weights(folder_.path());
  }
  std::string error() const {
    std::string text = error_of([&] { open(); });
    if (const auto at = text.find(folder_.path().string()); at != std::string::npos) text.erase(at, folder_.path().string().size());
    return text;
  }

  json::Value config;
  std::map<std::string, Array> parts;
  Array expected;

 private:
  TemporaryFolder folder_;
};

/// What the matrix has to be in f32: itself where its form is exact, else rounded to f16.
Array wanted_values(const Array& exact, const std::string& form) {
  if (form != "F16") return exact;
  Array rounded(f32, exact.shape());
  for (std::int64_t i = 0; i < exact.size(); ++i) rounded.set_double(i, f16_value(f16_bits(static_cast<float>(exact.get_double(i)))));
  return rounded;
}

Array in_f32(const Array& values) {
  Array wide(f32, values.shape());
  for (std::int64_t i = 0; i < values.size(); ++i) wide.set_double(i, values.get_double(i));
  return wide;
}

class QuantizedMatrix : public testing::TestWithParam<std::string> {};

TEST_P(QuantizedMatrix, HasTheNumbersOfItsDefinition) {
  const QuantizedLayer layer(GetParam());
  const std::string form = described_cases().at(GetParam()).at("form");
  const Checkpoint checkpoint = layer.open();
  ASSERT_EQ(checkpoint.names(), std::vector<std::string_view>{"layer.weight"});
  EXPECT_EQ(type_name(checkpoint.at("layer.weight")), form);
  EXPECT_EQ(in_f32(checkpoint.array("layer.weight")), wanted_values(layer.expected, form));
}

TEST_P(QuantizedMatrix, GivesAnyOfItsRows) {
  const Checkpoint checkpoint = QuantizedLayer(GetParam()).open();
  const TensorView& matrix = checkpoint.at("layer.weight");
  std::vector<std::byte> all, some;
  row_bytes(matrix, 0, row_count(matrix), all);
  row_bytes(matrix, 5, 9, some);
  const std::size_t row = all.size() / static_cast<std::size_t>(row_count(matrix));
  EXPECT_TRUE(std::equal(some.begin(), some.end(), all.begin() + static_cast<std::ptrdiff_t>(5 * row)));
}

std::vector<std::string> case_names() {
  std::vector<std::string> names;
  const json::Value described = described_cases();
  for (const auto& [name, value] : described.items()) names.push_back(name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Cases, QuantizedMatrix, testing::ValuesIn(case_names()), [](const auto& each) { return each.param; });

class QuantizedModel : public testing::TestWithParam<std::string> {};

/// Logits of transformers with the same numbers.
TEST_P(QuantizedModel, GivesTheRecordedLogits) {
  for (const VerifiedTensor& t : verify_folder(fixture("quantized/" + GetParam()), Session()))
    EXPECT_TRUE(t.passed()) << t.name << ": " << t.difference << " > " << t.allowed;
}

std::vector<float> logits_of(const std::filesystem::path& model) {
  const std::vector<std::int32_t> ids{5, 17, 200, 31, 8};
  return Model::open(model, Session(), {.cache = CacheType::f32}).append(ids);
}

TEST_P(QuantizedModel, GivesTheRecordedLogitsAsAGgufFile) {
  const TemporaryFolder folder;
  const std::filesystem::path original = fixture("quantized/" + GetParam());
  quantize_model(source_of_folder(original), folder / "m.gguf", nullptr, {});
  EXPECT_EQ(type_name(GgufFile::open(folder / "m.gguf").at("blk.0.attn_q.weight")), GetParam() == "fp8" ? "F16" : "Q5_0");
  for (const VerifiedTensor& t : verify_model(folder / "m.gguf", original, Session()))
    EXPECT_TRUE(t.passed()) << t.name << ": " << t.difference << " > " << t.allowed;
}

/// Products with blocks round activations to 8 bits, in the folder as in the file. What differs is the order of sums, as the file's rows
/// of queries and keys stand as neighbours turn: up to 2^-24 for each of 64 products. A rounding may fall otherwise by it, which moves one
/// of 64 inputs by 1/127 of the largest of its 32, and so an output by some 2^-9 of its size. Of fp8 no activations are rounded.
TEST_P(QuantizedModel, RunsAsItsGgufFile) {
  const TemporaryFolder folder;
  const std::filesystem::path original = fixture("quantized/" + GetParam());
  quantize_model(source_of_folder(original), folder / "m.gguf", nullptr, {});
  const std::vector<float> seen = logits_of(original), wanted = logits_of(folder / "m.gguf");
  double largest = 0;
  for (const float logit : wanted) largest = std::max(largest, std::abs(double{logit}));
  const double allowed = std::ldexp(largest, GetParam() == "fp8" ? -18 : -9);
  for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(seen[i], wanted[i], allowed);
}

TEST_P(QuantizedModel, BecomesFloatsWithTheSameNumbers) {
  const TemporaryFolder folder;
  const Checkpoint quantized = open_weights(fixture("quantized/" + GetParam()));
  write_dense(quantized, folder / "m.safetensors", f32);
  const SafetensorsFile written = SafetensorsFile::open(folder / "m.safetensors");
  for (std::string_view name : quantized.names()) EXPECT_EQ(written.array(name), in_f32(quantized.array(name))) << name;
}

INSTANTIATE_TEST_SUITE_P(Schemes, QuantizedModel, testing::Values("gptq", "awq", "fp8"), [](const auto& each) { return each.param; });

/// How many threads make the rows of a matrix; they wait for each other to have come, but for no longer than twenty seconds in all.
std::size_t threads_that_make_rows(int wanted) {
  const auto late = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  std::mutex mutex;
  std::condition_variable changed;
  std::set<std::thread::id> seen;
  TensorView view{.name = "w", .shape = {1024, 1}, .data = {}};
  view.make_rows = [&](std::int64_t /*first*/, std::int64_t count, std::byte* rows) {
    std::memset(rows, 0, static_cast<std::size_t>(count) * sizeof(float));
    std::unique_lock lock(mutex);
    seen.insert(std::this_thread::get_id());
    changed.notify_all();
    changed.wait_until(lock, late, [&] { return seen.size() >= static_cast<std::size_t>(wanted); });
  };
  Graph graph("made");
  graph.output("y", graph.param("w", {1024, 1}, f32));
  const Checkpoint checkpoint = Checkpoint::of("made", {{.name = "made", .tensors = {&view, 1}, .owner = nullptr}});
  load_weights(graph, checkpoint, WeightNames{}, wanted);
  return seen.size();
}

TEST(QuantizedWeights, AreMadeByAsManyThreadsAsAreAskedFor) {
  for (const int threads : {1, 3}) EXPECT_EQ(threads_that_make_rows(threads), static_cast<std::size_t>(threads));
}

TEST(QuantizedWeights, AnotherMethodIsNamed) {
  QuantizedLayer layer("gptq4");
  layer.config["quant_method"] = "aqlm";
  EXPECT_EQ(layer.error(),
            "/config.json: quantization_config.quant_method: 'aqlm' is not supported (supported: gptq, awq, fp8, fbgemm_fp8, "
            "compressed-tensors)");
}

TEST(QuantizedWeights, OtherBitsAndLayoutsAreNamed) {
  QuantizedLayer gptq("gptq4"), awq("awq"), packed("packed4");
  gptq.config["bits"] = 5;
  EXPECT_EQ(gptq.error(), "/config.json: quantization_config.bits: 5 bits are not supported (supported: 2, 3, 4, 8)");
  gptq.config["bits"] = 4, gptq.config["checkpoint_format"] = "marlin";
  EXPECT_EQ(gptq.error(), "/config.json: quantization_config.checkpoint_format: 'marlin' is not known (allowed: gptq, gptq_v2)");
  awq.config["version"] = "GEMV";
  EXPECT_EQ(awq.error(), "/config.json: quantization_config.version: 'GEMV' is not supported (supported: 'gemm')");
  packed.config["format"] = "nvfp4-pack-quantized";
  EXPECT_NE(packed.error().find("quantization_config.format: 'nvfp4-pack-quantized'"), std::string::npos) << packed.error();
}

TEST(QuantizedWeights, AMissingTensorIsNamed) {
  for (const auto& [name, part] : {std::pair("gptq4", "scales"), std::pair("awq", "qzeros"), std::pair("packed4", "weight_shape"),
                                   std::pair("bytes", "weight_scale")}) {
    QuantizedLayer layer(name);
    layer.parts.erase(std::string("layer.") + part);
    EXPECT_EQ(layer.error(), fmt::format(": the tensor 'layer.{}' is missing, which belongs to the quantized matrix 'layer.weight'", part));
  }
  QuantizedLayer fp8("fp8_blocks");
  fp8.parts.erase("layer.weight_scale_inv");
  EXPECT_NE(fp8.error().find("'layer.weight_scale' is missing"), std::string::npos) << fp8.error();
}

TEST(QuantizedWeights, TensorsThatDisagreeAreNamed) {
  QuantizedLayer zeros("gptq4"), scales("awq"), groups("gptq4"), blocks("fp8_blocks"), shape("packed4");
  zeros.parts["layer.qzeros"] = Array(i32, {4, 5});
  EXPECT_EQ(zeros.error(), ": tensor 'layer.qzeros' is i32[4,5] (needed: i32[4,4])");
  scales.config["group_size"] = 32;
  EXPECT_EQ(scales.error(), ": tensor 'layer.scales' is f16[2,32] (needed: [4,32])");
  Array g_idx(i32, {128});
  g_idx.set_int(7, 4);
  groups.parts["layer.g_idx"] = g_idx;
  EXPECT_EQ(groups.error(), "tensor 'layer.g_idx': group 4 (allowed: 0..3)");
  blocks.config["weight_block_size"] = {8, 48};
  EXPECT_EQ(blocks.error(), ": tensor 'layer.weight_scale_inv' is f32[2,3] (needed: f32[4,3])");
  shape.parts["layer.weight_shape"] = Array(i64, {2});
  EXPECT_EQ(shape.error(), "tensor 'layer.weight_shape': [0,0] does not fit 'layer.weight_packed', 128 codes a row");
}

TEST(QuantizedWeights, AWeightThatF16DoesNotReachIsNamed) {
  QuantizedLayer layer("fp8");
  Array scale(f32, {});
  scale.set_double(0, 1e6);
  layer.parts["layer.weight_scale_inv"] = scale;
  const Checkpoint checkpoint = layer.open();
  EXPECT_NE(error_of([&] { checkpoint.array("layer.weight"); }).find("tensor 'layer.weight': a weight is "), std::string::npos);
}

}  // namespace
}  // namespace rlx
