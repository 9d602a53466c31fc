// The configs of small models of all families as transformers 4 and 5 save them (scripts/hf_configs.py): other fields, the same models.
#include <gtest/gtest.h>

#include <set>

#include "fixture.h"
#include "models/families/decoder_family.h"
#include "models/layers/encoder.h"
#include "models/layers/t5.h"
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

TEST(ConfigVersions, EveryFamilyIsAmongThem) {
  std::set<std::string, std::less<>> seen;
  const json::Value now = configs_of(5);
  for (const auto& [name, config] : now.items()) {
    EXPECT_FALSE(described(config).empty()) << name;
    seen.insert(config.at("model_type").get<std::string>());
  }
  for (const std::string_view type : DecoderFamily::model_types()) EXPECT_TRUE(seen.contains(type)) << type;
}

}  // namespace
}  // namespace rlx
