// GGUF files of every family that lack one key or one tensor, or have a layer too many.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <variant>

#include "fixture.h"
#include "formats/gguf/gguf_writer.h"
#include "formats/temporary_folder.h"
#include "message.h"
#include "models/layers/t5.h"
#include "models/weights/decoder_files.h"

namespace rlx::test {
namespace {

Graph graph_of(const DecoderConfig& config) { return decoder_graph(config, {.capacity = 16, .chunk = 8}); }
Graph graph_of(const T5Config& config) { return t5_graph(config, {.batch = 1, .length = 8, .decoder_length = 8}); }
NamedArrays weights_of(const DecoderFiles& model) { return model.weights(graph_of(model.config), 1); }
NamedArrays weights_of(const T5Files& model) { return load_weights(graph_of(model.config), model.checkpoint, model.names, 1); }

/// A fixture, parts of which are left out or said otherwise.
class Altered {
 public:
  explicit Altered(const std::string& file) : original_(GgufFile::open(fixture("gguf_models/" + file))) {}

  const GgufFile& original() const { return original_; }

  DecoderConfig config_without(std::initializer_list<std::string_view> keys) const { return config_with({}, keys); }
  DecoderConfig config_with(const std::map<std::string, std::uint32_t>& sizes, std::initializer_list<std::string_view> without) const {
    GgufMetadata metadata;
    metadata.copy(original_.metadata());
    for (std::string_view key : without) metadata.erase(key);
    for (const auto& [key, size] : sizes) metadata.set(key, size);
    write(metadata, "");
    return DecoderFiles::open(folder_ / "m.gguf").config;
  }
  std::string error_without(std::string_view key, std::string_view tensor) const {
    GgufMetadata metadata;
    metadata.copy(original_.metadata());
    metadata.erase(key);
    return error_with(metadata, tensor);
  }
  std::string error_with_layers(std::int64_t layers) const {
    GgufMetadata metadata;
    metadata.copy(original_.metadata());
    metadata.set(std::string(original_.value("general.architecture").string()) + ".block_count", layers);
    return error_with(metadata, "");
  }

 private:
  void write(const GgufMetadata& metadata, std::string_view left_out) const {
    std::vector<TensorView> tensors(original_.tensors().begin(), original_.tensors().end());
    std::erase_if(tensors, [&](const TensorView& tensor) { return tensor.name == left_out; });
    GgufWriter writer(folder_ / "m.gguf", metadata, tensors);
    for (const TensorView& tensor : tensors) writer.write(tensor.data);
    writer.commit();
  }
  std::string error_with(const GgufMetadata& metadata, std::string_view left_out) const {
    write(metadata, left_out);
    return error_of([&] { std::visit([](const auto& model) { weights_of(model); }, open_language_model(folder_ / "m.gguf")); });
  }

  GgufFile original_;
  TemporaryFolder folder_;
};

/// "attention.head_count" of "llama.attention.head_count".
std::string below_architecture(std::string_view key) { return std::string(key.substr(key.find('.') + 1)); }

/// Other keys have a usual value, or what they say is seen by the sizes of tensors.
bool is_needed(const GgufValue& value) {
  constexpr std::string_view needed[] = {"architecture",
                                         "context_length",
                                         "embedding_length",
                                         "block_count",
                                         "feed_forward_length",
                                         "expert_count",
                                         "expert_used_count",
                                         "attention.head_count",
                                         "ssm.conv_kernel",
                                         "ssm.inner_size",
                                         "ssm.state_size",
                                         "ssm.time_step_rank",
                                         "ssm.group_count",
                                         "shortconv.l_cache",
                                         "logit_scale",
                                         "attention.kv_lora_rank",
                                         "attention.layer_norm_epsilon",
                                         "attention.layer_norm_rms_epsilon",
                                         "attention.relative_buckets_count"};
  constexpr std::string_view not_there[] = {"t5.context_length", "t5.attention.layer_norm_epsilon",            // another norm
                                            "qwen3moe.feed_forward_length", "qwen3next.feed_forward_length"};  // of dense layers
  const bool none = value.type() == GgufType::u32 && value.integer() == 0;  // as is said of what a model has not
  return !none && std::ranges::count(not_there, value.key()) == 0 && std::ranges::count(needed, below_architecture(value.key())) > 0;
}

class LackingFile : public testing::TestWithParam<std::string> {};

TEST_P(LackingFile, NamesTheKeyThatIsMissing) {
  const Altered file(GetParam());
  for (const GgufValue& value : file.original().metadata()) {
    if (!is_needed(value)) continue;
    const std::string error = file.error_without(value.key(), "");
    EXPECT_NE(error.find("m.gguf: "), std::string::npos) << error;
    EXPECT_NE(error.find(below_architecture(value.key()) + "'"), std::string::npos) << value.key() << ": " << error;
  }
}

/// But for those that models of one architecture may have or not, and one norm that goes by two names.
TEST_P(LackingFile, NamesTheTensorThatIsMissing) {
  constexpr std::string_view guessed[] = {"output.weight", "output.bias", "rope_freqs.weight", "blk.1.ffn_gate_inp_shexp.weight",
                                          "token_embd_norm.weight"};
  const Altered file(GetParam());
  for (const TensorView& tensor : file.original().tensors()) {
    if (std::ranges::count(guessed, tensor.name) > 0) continue;
    const std::string error = file.error_without("", tensor.name);
    EXPECT_NE(error.find("'" + tensor.name + "'"), std::string::npos) << tensor.name << ": " << error;
  }
}

std::vector<std::string> files() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(fixture("gguf_models"))) names.push_back(entry.path().filename().string());
  std::ranges::sort(names);
  return names;
}

INSTANTIATE_TEST_SUITE_P(All, LackingFile, testing::ValuesIn(files()), [](const auto& each) {
  std::string name = each.param;
  std::ranges::replace_if(name, [](unsigned char c) { return !std::isalnum(c); }, '_');
  return name;
});

TEST(GgufKeys, TensorsOfLayersBehindTheLastAreOfNoUse) {
  for (const char* name : {"llama.gguf", "gpt2.gguf", "mamba.gguf", "deepseek_v3.gguf"}) {
    const std::string error = Altered(name).error_with_layers(1);
    EXPECT_NE(error.find("has tensors that this model has no use for: 'blk.1."), std::string::npos) << error;
  }
}

TEST(GgufKeys, FilesOfGemma2BeforeItsKeysHaveItsUsualLimitsAndWindow) {
  const DecoderConfig c = Altered("gemma2.gguf")
                              .config_without({"gemma2.attention.sliding_window", "gemma2.attention.sliding_window_pattern",
                                               "gemma2.attn_logit_softcapping", "gemma2.final_logit_softcapping"});
  EXPECT_EQ(c.attention_softcap, 50);
  EXPECT_EQ(c.logits_softcap, 30);
  for (std::size_t i = 0; i < c.layers.size(); ++i) EXPECT_EQ(c.layers[i].window, i % 2 == 0 ? 4096 : 0) << i;
}

TEST(GgufKeys, ExpertsOfQwenWithoutAWidthShareThatOfALayer) {
  const Altered file("qwen2_moe.gguf");
  const auto key = [&](const char* name) { return file.original().value(fmt::format("qwen2moe.{}", name)).integer(); };
  const DecoderConfig c = file.config_with({{"qwen2moe.feed_forward_length", 80}}, {"qwen2moe.expert_feed_forward_length"});
  EXPECT_EQ(c.experts.width, 80 / key("expert_used_count"));
}

TEST(GgufKeys, OfGemma3SayHowFarItsLayersSee) {
  const std::string error = Altered("gemma3.gguf").error_without("gemma3.attention.sliding_window", "");
  EXPECT_NE(error.find("m.gguf: "), std::string::npos) << error;
  EXPECT_NE(error.find("'gemma3.attention.sliding_window'"), std::string::npos) << error;
}

}  // namespace
}  // namespace rlx::test
