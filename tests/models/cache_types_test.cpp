// Caches of narrow numbers, against caches of f32 and against what other software recorded.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "fixture.h"
#include "formats/tensors/safetensors.h"
#include "models/logits.h"
#include "models/run/batches/batched_decoder.h"
#include "models/run/caches/cached_decoder.h"
#include "rlx/session.h"

namespace rlx {
namespace {

using test::fixture;
using test::Ids;
using test::largest_difference;
using test::session;
using test::some_ids;

constexpr CacheType narrow_types[] = {CacheType::f16, CacheType::bf16, CacheType::q8};

double largest(std::span<const float> numbers) {
  double most = 0;
  for (float x : numbers) most = std::max(most, std::abs(static_cast<double>(x)));
  return most;
}

/// How far a kept number may be from what was computed, as a part of the largest that shares its scale.
double rounding(CacheType type) {
  return type == CacheType::f16 ? std::ldexp(1.0, -11) : type == CacheType::bf16 ? std::ldexp(1.0, -8) : 0.5 / 127;
}

/// To first order each layer's result moves by the rounding of the values, and by that of the keys times what scores are in size, some 2
/// here; residuals and norms pass a relative error on, so that a logit moves by so much of the largest for each layer.
double allowed(CacheType type, const DecoderConfig& config, double largest_logit) {
  return 3 * rounding(type) * static_cast<double>(config.layers.size()) * largest_logit;
}

class CacheTypes : public testing::TestWithParam<std::string> {
 protected:
  const DecoderFiles files_ = DecoderFiles::open(fixture(GetParam()));
};

TEST_P(CacheTypes, ChangeLogitsByTheirRoundingOnly) {
  const Ids prompt = some_ids(29), next{7, 9};
  CachedDecoder wide(session(), files_, {.context = 40});
  wide.append(prompt);
  const auto expected = wide.append(next, 2);
  for (const CacheType type : narrow_types) {
    CachedDecoder narrow(session(), files_, {.context = 40, .cache = type});
    narrow.append(prompt);
    const double difference = largest_difference(narrow.append(next, 2), expected);
    EXPECT_LE(difference, allowed(type, files_.config, largest(expected))) << name_of(type);
    EXPECT_GT(difference, 0) << name_of(type);
  }
}

TEST_P(CacheTypes, OfManySequencesAreThoseOfOne) {
  const Ids prompt = some_ids(files_.config.position_embedding ? 40 : 130), next{7};
  const auto context = static_cast<std::int64_t>(prompt.size()) + 20;
  for (const CacheType type : narrow_types) {
    CachedDecoder one(session(), files_, {.context = context, .cache = type});
    BatchedDecoder many(session(), files_, {.context = context, .tokens = 4 * page_tokens, .cache = type});
    const std::vector<BatchedDecoder::Tokens> prompts{{many.add(), next}, {many.add(), prompt}};
    one.append(prompt);
    many.append(prompts);
    const auto copy = many.copy(1);
    const auto logits = many.append(std::vector<BatchedDecoder::Tokens>{{1, next}, {copy, next}});
    const auto expected = one.append(next);
    // Sums run in another order, which may round a kept number the other way.
    for (const std::size_t i : {0, 1}) EXPECT_LE(largest_difference(logits[i], expected), allowed(type, files_.config, largest(expected)));
  }
}

// Of f16, the usual type.
TEST_P(CacheTypes, HalvesGiveTheRecordedGreedyTokens) {
  const SafetensorsFile file = SafetensorsFile::open(fixture(GetParam() + "/expected.safetensors"));
  const auto recorded = [&](const char* name) {
    Ids ids;
    const Array array = file.array(name);
    for (std::int64_t i = 0; i < array.size(); ++i) ids.push_back(static_cast<std::int32_t>(array.get_int(i)));
    return ids;
  };
  const Ids greedy = recorded("greedy_ids");
  Ids ids = recorded("prompt_ids");
  CachedDecoder decoder(session(), files_, {.context = static_cast<std::int64_t>(greedy.size()), .cache = CacheType::f16});
  auto logits = decoder.append(ids);
  for (ids.push_back(greedy_choice(logits)); ids.size() < greedy.size(); ids.push_back(greedy_choice(logits)))
    logits = decoder.append(std::span(ids).last(1));
  EXPECT_EQ(ids, greedy);
}

INSTANTIATE_TEST_SUITE_P(Families, CacheTypes,
                         testing::Values("hf/llama", "hf/mistral", "hf/qwen2", "hf/gemma2", "hf/gemma3", "hf/phi3", "hf/phi3-longrope",
                                         "hf/gpt2", "hf/olmo2", "hf_more/deepseek_v2", "hf_more/deepseek_v3", "hf_more/falcon-new",
                                         "hf_more/cohere", "hf_more/olmo3"),
                         [](const auto& each) {
                           std::string name = each.param;
                           std::replace_if(name.begin(), name.end(), [](char c) { return c == '-' || c == '/'; }, '_');
                           return name;
                         });

std::int64_t bytes_of_states(const Graph& graph) {
  std::int64_t bytes = 0;
  for (const auto& [input, value] : graph.inputs())
    if (input.kind == InputKind::state) bytes += bytes_for(input.type.dtype, input.type.size().value());
  return bytes;
}

// Heads of 16: a scale of 4 bytes for 16 numbers.
TEST(CacheStates, TakeTheMemoryOfTheirNumbers) {
  const DecoderConfig config = DecoderFiles::open(fixture("hf/llama")).config;
  for (const std::int64_t pages : {0, 3}) {
    const auto bytes = [&](CacheType type) {
      return bytes_of_states(decoder_graph(config, {.pages = pages, .capacity = 300, .chunk = 8, .cache = type}));
    };
    const std::int64_t whole = bytes(CacheType::f32);
    EXPECT_EQ(bytes(CacheType::f16), whole / 2);
    EXPECT_EQ(bytes(CacheType::bf16), whole / 2);
    EXPECT_EQ(bytes(CacheType::q8), whole / 4 + whole / 16);
  }
}

// The claim reads what is kept: no launch writes as many f32 numbers as a cache has.
TEST(CacheStates, AreReadWhereTheyLie) {
  for (const char* name : {"hf/llama", "hf_more/deepseek_v3"})
    for (const std::int64_t pages : {0, 4})
      for (const CacheType type : narrow_types) {
        const DecoderConfig config = DecoderFiles::open(fixture(name)).config;
        const Graph graph = decoder_graph(config, {.pages = pages, .capacity = 333, .chunk = 64, .cache = type});
        const std::string launches = session().compile(graph).dump(Stage::lir);
        EXPECT_NE(launches.find("state_update"), std::string::npos);
        std::istringstream lines(launches);
        for (std::string line; std::getline(lines, line);) {
          const bool all_rows = line.find(",333,") != std::string::npos || line.find(",128*P,") != std::string::npos;
          const bool scales = line.find(".scales'") != std::string::npos;
          EXPECT_FALSE(all_rows && !scales && line.find("f32[") != std::string::npos) << name << " " << name_of(type) << line;
        }
      }
}

}  // namespace
}  // namespace rlx
