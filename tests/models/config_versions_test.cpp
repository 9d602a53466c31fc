// The configs of small models of all families as transformers 4 and 5 save them (scripts/hf_configs.py): other fields, the same models.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>

#include "fixture.h"
#include "ir/reference.h"
#include "message.h"
#include "models/config/rope_config.h"
#include "models/families/decoder_family.h"
#include "models/layers/encoder.h"
#include "models/layers/t5.h"
#include "rlx/ops.h"
#include "rlx/text.h"

namespace rlx {
namespace {

/// The model that a config describes, with all that its graph depends on.
std::string described(const json::Value& config) {
  const JsonField field(config, "config.json");
  const auto type = config.at("model_type").get<std::string>();
  if (type == "t5") return to_text(t5_graph(T5Config::read(field), {1, 8, 8}));
  const DecoderConfig c = DecoderFamily::find(type)->read(field);
  if (c.causal) return fmt::format("context {}\n{}", c.max_positions, to_text(decoder_graph(c, {.capacity = 32, .chunk = 8})));
  Graph graph("encoder");
  const EncodedText text = encode_text(Flow(graph), c, 2, 8);
  graph.output("states", text.states.back());
  return to_text(graph);
}

json::Value configs_of(int version) {
  return json::read_file(test::fixture(fmt::format("hf_configs/transformers{}.json", version)), {.allow_non_finite = true});
}

TEST(ConfigVersions, SayTheSameModels) {
  const std::set<std::string_view> new_in_5{"lfm2_moe", "nomic_bert", "qwen3_5", "qwen3_5_text"};
  const json::Value old = configs_of(4), now = configs_of(5);
  EXPECT_EQ(old.size() + new_in_5.size(), now.size());
  for (const auto& [name, config] : now.items()) {
    SCOPED_TRACE(name);
    ASSERT_NE(old.contains(name), new_in_5.contains(name));
    if (!old.contains(name)) continue;
    EXPECT_NE(config, old.at(name));
    EXPECT_EQ(described(config), described(old.at(name)));
  }
}

TEST(ConfigVersions, SayOfT5WhetherItsWordsAreTheEmbeddings) {
  json::Value config = configs_of(5).at("t5");
  config["tie_word_embeddings"] = true, config["scale_decoder_outputs"] = false;  // as transformers 5 saves FLAN-T5
  json::Value old = config;
  old["tie_word_embeddings"] = false, old.erase("scale_decoder_outputs");
  EXPECT_EQ(described(config), described(old));
}

TEST(ConfigVersions, EveryFamilyIsAmongThem) {
  std::set<std::string, std::less<>> seen;
  const json::Value now = configs_of(5);
  for (const auto& [name, config] : now.items()) {
    EXPECT_FALSE(described(config).empty()) << name;
    seen.insert(config.at("model_type").get<std::string>());
  }
  for (const std::string_view type : DecoderFamily::model_types())
    EXPECT_TRUE(seen.contains(type)) << type << ": add it to scripts/hf_configs.py";
}

/// What is said about a config of transformers 5 of which a member of `path` is another.
std::string refusal(const std::string& name, const std::string& path, const json::Value& other) {
  json::Value config = configs_of(5).at(name);
  config[json::Value::json_pointer(path)] = other;
  return test::whole_error_of([&] { described(config); });
}

TEST(ConfigVersions, WhatReadersDoNotAgreeOnIsRefused) {
  EXPECT_EQ(refusal("llama", "/rope_parameters/partial_rotary_factor", 0.5),
            "config.json: partial_rotary_factor: 0.5 is not supported by llama (allowed: 1)");
  EXPECT_EQ(refusal("gemma3_text", "/rope_parameters/full_attention/partial_rotary_factor", 0.5),
            "config.json: partial_rotary_factor: 0.5 is not supported by gemma3_text (allowed: 1)");
  EXPECT_EQ(refusal("modernbert", "/rope_parameters/sliding_attention/partial_rotary_factor", 0.5),
            "config.json: partial_rotary_factor: 0.5 is not supported by modernbert (allowed: 1)");
  EXPECT_EQ(refusal("phi", "/rope_parameters/partial_rotary_factor", 0.5), "no error");
  EXPECT_EQ(refusal("deepseek_v3", "/head_dim", 2U), "config.json: head_dim: 2 is not supported (allowed: qk_rope_head_dim, 4)");
  EXPECT_EQ(refusal("mistral", "/layer_types", {"full_attention", "sliding_attention"}),
            "config.json: layer_types: full_attention is not supported by mistral beside a sliding_window (allowed: sliding_attention)");
}

TEST(ConfigVersions, AScalingThatWasAddedCounts) {
  json::Value now = configs_of(5).at("qwen2"), old = configs_of(4).at("qwen2");
  const json::Value yarn = {{"type", "yarn"}, {"factor", 4.0}, {"original_max_position_embeddings", 16U}};
  now["rope_theta"] = old.at("rope_theta");
  now["rope_scaling"] = old["rope_scaling"] = yarn;
  EXPECT_EQ(described(now), described(old));
  EXPECT_NE(described(now), described(configs_of(5).at("qwen2")));
  EXPECT_EQ(refusal("gemma3_text", "/rope_scaling", yarn),
            "config.json: rope_scaling: is not supported beside rope_parameters of each type of layer (allowed: one of the two)");
}

TEST(ConfigVersions, PartsOfHeadsAreFractions) {
  for (const double part : {1e30, -1.0, 0.0})
    EXPECT_EQ(refusal("phi", "/rope_parameters/partial_rotary_factor", part),
              fmt::format("config.json: a part of {} of a head's elements turns (allowed: above 0, up to 1)", part));
  json::Value config = configs_of(5).at("phi");
  config["rope_parameters"] = {{"rope_type", "proportional"}, {"rope_theta", 1e4}, {"partial_rotary_factor", -1e30}};
  EXPECT_NE(test::whole_error_of([&] { described(config); }).find("a part of -1e+30 of a head's elements turns"), std::string::npos);
}

TEST(ConfigVersions, YarnsTurnsAreAboveNothing) {
  for (const char* name : {"beta_fast", "beta_slow"})
    EXPECT_EQ(refusal("llama-yarn", fmt::format("/rope_parameters/{}", name), -1),
              fmt::format("config.json: rope_parameters.{}: expected a number in 1e-06..1000000, found -1", name));
}

/// A field that says a size, which no class needs to have; those that only one version has are not among the defaults.
bool every_config_says(std::string_view name) {
  constexpr std::array said{"model_type",        "vocab_size",       "hidden_size", "num_hidden_layers", "n_embd",
                            "n_layer",           "n_layers",         "dim",         "num_experts",       "num_experts_per_tok",
                            "num_local_experts", "n_routed_experts", "pad_token_id"};
  return std::ranges::find(said, name) != said.end();
}

TEST(ConfigDefaults, AreThoseOfTheClasses) {  // scripts/hf_defaults.py
  const json::Value classes = json::read_file(test::fixture("hf_configs/defaults.json"), {.allow_non_finite = true});
  const std::set<std::string_view> within_others{"gemma3", "qwen3_5"};  // their texts' configs have a type of their own
  for (const std::string_view type : DecoderFamily::model_types())
    EXPECT_NE(classes.contains(type), within_others.contains(type)) << type << ": run scripts/hf_defaults.py";
  for (const auto& [type, full] : classes.items()) {
    SCOPED_TRACE(type);
    json::Value sizes;
    for (const auto& [name, value] : full.items())
      if (every_config_says(name)) sizes[name] = value;
    EXPECT_EQ(described(sizes), described(full));
  }
}

/// What rope makes of heads in which one element is 1, that of each pair that its cosine stays in: (pairs, positions, head size).
Array turned_pairs(const RopeOptions& options, std::int64_t head_size, const std::vector<std::int32_t>& positions) {
  const std::int64_t pairs = head_size / 2, rows = std::ssize(positions);
  Array x(f32, {pairs, rows, head_size});
  for (std::int64_t i = 0; i < pairs * rows; ++i) x.set_double(i * head_size + i / rows, 1);
  Graph graph("rope");
  graph.output("y", rope(graph.constant(x), graph.constant(Array::of<std::int32_t>({rows}, positions)), options));
  return evaluate(graph, {})[0];
}

TEST(RopeConfigs, TurnAsTransformersDoes) {  // scripts/hf_ropes.py
  const json::Value cases = json::read_file(test::fixture("hf_configs/ropes.json"));
  EXPECT_GT(cases.size(), 15U);
  for (const auto& [name, recorded] : cases.items()) {
    SCOPED_TRACE(name);
    const RopeOptions options = read_rope(JsonField(recorded.at("config"), "config.json"), 16);
    const auto positions = recorded.at("positions").get<std::vector<std::int32_t>>();
    const Array turned = turned_pairs(options, 16, positions);
    for (std::size_t pair = 0; pair < 8; ++pair)
      for (std::size_t row = 0; row < positions.size(); ++row) {
        const auto at = static_cast<std::int64_t>((pair * positions.size() + row) * 16 + pair);
        EXPECT_NEAR(turned.get_double(at), recorded.at("cos")[row][pair].get<double>(), 5e-6) << positions[row] << ' ' << pair;
        EXPECT_NEAR(turned.get_double(at + 8), recorded.at("sin")[row][pair].get<double>(), 5e-6) << positions[row] << ' ' << pair;
      }
  }
}

}  // namespace
}  // namespace rlx
