#include "models/conversion/type_mix.h"

#include <map>

#include "formats/temporary_folder.h"

namespace rlx {
namespace {

/// The matrices of a Llama of 32 layers, of F16; `kv` rows of keys and values.
std::vector<TensorView> llama(std::int64_t kv, std::int64_t width = 4096) {
  const BlockFormat* half = find_block_format("F16");
  std::vector<TensorView> tensors{{"token_embd.weight", f16, {32000, width}, {}, half}};
  const auto add = [&](int layer, std::string_view name, std::int64_t rows, std::int64_t columns) {
    tensors.push_back({fmt::format("blk.{}.{}.weight", layer, name), f16, {rows, columns}, {}, half});
  };
  for (int layer = 0; layer < 32; ++layer) {
    add(layer, "attn_q", width, width);
    add(layer, "attn_k", kv, width);
    add(layer, "attn_v", kv, width);
    add(layer, "attn_output", width, width);
    add(layer, "ffn_gate", 11008, width);
    add(layer, "ffn_up", 11008, width);
    add(layer, "ffn_down", width, 11008);
    tensors.push_back({fmt::format("blk.{}.attn_norm.weight", layer), f32, {width}, {}, find_block_format("F32")});
    tensors.push_back({fmt::format("blk.{}.ffn_norm.weight", layer), f32, {width}, {}, find_block_format("F32")});
  }
  tensors.push_back({"output_norm.weight", f32, {width}, {}, find_block_format("F32")});
  tensors.push_back({"output.weight", f16, {32000, width}, {}, half});
  return tensors;
}

using Counts = std::map<std::string_view, int>;

Counts counts_of(std::string_view mix, const ModelFacts& facts, const std::vector<TensorView>& tensors) {
  Counts counts;
  for (const TypeChoice& choice : choose_types(find_type_mix(mix), tensors, facts, {}, false)) ++counts[choice.format->name];
  return counts;
}

// How many tensors of each type the published files of Llama 2 7B and Mistral 7B hold, as their loaders print it.
TEST(TypeMix, GivesAsManyTensorsOfEachTypeAsPublishedFilesHave) {
  const auto tensors = llama(4096);
  const ModelFacts facts{.layers = 32};
  EXPECT_EQ(counts_of("Q4_K_M", facts, tensors), (Counts{{"F32", 65}, {"Q4_K", 193}, {"Q6_K", 33}}));
  EXPECT_EQ(counts_of("Q5_K_M", facts, tensors), (Counts{{"F32", 65}, {"Q5_K", 193}, {"Q6_K", 33}}));
  EXPECT_EQ(counts_of("Q4_K_S", facts, tensors), (Counts{{"F32", 65}, {"Q4_K", 217}, {"Q5_K", 8}, {"Q6_K", 1}}));
  EXPECT_EQ(counts_of("Q3_K_M", facts, tensors), (Counts{{"F32", 65}, {"Q3_K", 129}, {"Q4_K", 92}, {"Q5_K", 4}, {"Q6_K", 1}}));
  EXPECT_EQ(counts_of("Q3_K_L", facts, tensors), (Counts{{"F32", 65}, {"Q3_K", 129}, {"Q5_K", 96}, {"Q6_K", 1}}));
  EXPECT_EQ(counts_of("Q4_0", facts, tensors), (Counts{{"F32", 65}, {"Q4_0", 225}, {"Q6_K", 1}}));
  EXPECT_EQ(counts_of("Q8_0", facts, tensors), (Counts{{"F32", 65}, {"Q8_0", 226}}));
  EXPECT_EQ(counts_of("F16", facts, tensors), (Counts{{"F32", 65}, {"F16", 226}}));
  const ModelFacts grouped{.layers = 32, .heads_per_kv_head = 4};
  EXPECT_EQ(counts_of("Q2_K", grouped, llama(1024)), (Counts{{"F32", 65}, {"Q2_K", 129}, {"Q3_K", 64}, {"Q4_K", 32}, {"Q6_K", 1}}));
}

TEST(TypeMix, TheFirstAndLastLayersGetMoreBits) {
  const auto tensors = llama(4096);
  const auto choices = choose_types(find_type_mix("Q4_K_M"), tensors, {.layers = 32}, {}, false);
  std::vector<int> layers;
  for (std::size_t i = 0; i < tensors.size(); ++i)
    if (tensors[i].name.find("ffn_down") != std::string::npos && choices[i].format->name == "Q6_K")
      layers.push_back(std::stoi(tensors[i].name.substr(4)));
  EXPECT_EQ(layers, (std::vector<int>{0, 1, 2, 3, 6, 9, 12, 15, 18, 21, 24, 27, 28, 29, 30, 31}));
}

TEST(TypeMix, TiedEmbeddingsAreAnOutput) {
  auto tensors = llama(4096);
  tensors.pop_back();
  EXPECT_EQ(choose_types(find_type_mix("Q4_K_M"), tensors, {.layers = 32}, {}, false).front().format->name, "Q6_K");
  EXPECT_EQ(choose_types(find_type_mix("Q4_K_M"), llama(4096), {.layers = 32}, {}, false).front().format->name, "Q4_K");
}

TEST(TypeMix, RowsThatAreNoWholeBlocksGetShorterBlocks) {
  const auto tensors = llama(4096, 4096 - 32);
  const auto choices = choose_types(find_type_mix("Q4_K"), tensors, {.layers = 32}, {}, true);
  EXPECT_EQ(choices[1].format->name, "Q5_0");
  EXPECT_TRUE(choices[1].fallback);
  EXPECT_EQ(choose_types(find_type_mix("Q4_K"), llama(4096, 4097), {.layers = 32}, {}, true)[1].format->name, "F16");
}

TEST(TypeMix, OverridesCountInTheirOrder) {
  const auto tensors = llama(4096);
  const std::vector<TypeOverride> overrides{{"blk\\.1\\..*down", Regex("blk\\.1\\..*down", "down of block 1"), find_block_format("Q8_0")},
                                            {"down", Regex("down", "down"), find_block_format("F16")}};
  const auto choices = choose_types(find_type_mix("Q4_K_M"), tensors, {.layers = 32}, overrides, false);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].name.find("ffn_down") != std::string::npos) {
      EXPECT_EQ(choices[i].format->name, tensors[i].name.starts_with("blk.1.") ? "Q8_0" : "F16");
    }
  }
}

TEST(TypeMix, NormsRoutersAndVectorsKeepTheirType) {
  const BlockFormat* plain = find_block_format("F32");
  const std::vector<TensorView> tensors{{"blk.0.ffn_gate_inp.weight", f32, {8, 256}, {}, plain},
                                        {"blk.0.attn_q_norm.weight", f32, {2, 256}, {}, plain},
                                        {"blk.0.attn_q.bias", f32, {256}, {}, plain},
                                        {"position_embd.weight", f32, {4, 256}, {}, plain},
                                        {"blk.0.ssm_conv1d.weight", f32, {256, 4}, {}, plain}};
  for (const TypeChoice& choice : choose_types(find_type_mix("Q8_0"), tensors, {.layers = 1}, {}, false)) EXPECT_EQ(choice.format, plain);
}

TEST(TypeMix, EveryTypeOfFloatsMayBeAskedFor) {
  for (const BlockFormat& format : block_formats()) {
    const bool integers = format.name.starts_with("I") && !format.name.starts_with("IQ");
    if (!integers) {
      EXPECT_NO_THROW(find_type_mix(format.name)) << format.name;
    }
  }
}

TEST(TypeMix, NamesAreFoundWhateverTheirCase) {
  EXPECT_EQ(find_type_mix("q4_k").name, "Q4_K_M");
  EXPECT_EQ(find_type_mix("iq4_xs").name, "IQ4_XS");
  const std::string message = test::error_of([] { find_type_mix("Q4"); });
  EXPECT_TRUE(message.starts_with("unknown type 'Q4' (allowed: F32, F16, ")) << message;
  EXPECT_TRUE(test::error_of([] { find_type_mix("q4_km"); }).starts_with("unknown type 'q4_km' (near: 'Q4_K_M'; allowed: F32, "));
}

}  // namespace
}  // namespace rlx
