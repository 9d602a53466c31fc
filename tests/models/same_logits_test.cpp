// A token has the same logits, to the bit, however it is read: alone, among a few as guesses are checked, in a prompt, behind a kept cache,
// in a batch.
#include <gtest/gtest.h>

#include <map>
#include <tuple>

#include "backends/cpu/machine/cpu_features.h"
#include "formats/temporary_folder.h"
#include "logits.h"
#include "models/random_llama.h"
#include "models/run/batches/batched_decoder.h"
#include "models/run/caches/cached_decoder.h"
#include "models/run/caches/cached_t5.h"

namespace rlx::test {
namespace {

constexpr CacheType cache_types[] = {CacheType::f32, CacheType::f16, CacheType::bf16, CacheType::q8};

/// The logits behind all tokens, of which the first `prompt` run together and then `step` at a time.
std::vector<float> logits_of(CachedDecoder& decoder, std::span<const std::int32_t> ids, std::size_t prompt, std::size_t step) {
  decoder.rewind(0);
  std::vector<float> all;
  for (std::size_t at = 0, count = 0; at < ids.size(); at += count) {
    count = std::min(at == 0 ? prompt : step, ids.size() - at);
    const std::vector<float> some = decoder.append(ids.subspan(at, count), static_cast<std::int64_t>(count));
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

std::vector<float> behind(const std::vector<float>& logits, std::size_t tokens, const CachedDecoder& decoder) {
  return {logits.begin() + static_cast<std::ptrdiff_t>(tokens) * decoder.vocab_size(), logits.end()};
}

/// What guesses rely on: behind a prompt, few tokens together are as they are alone.
void expect_same_few(CachedDecoder& decoder, const Ids& ids, std::size_t prompt, const std::string& what) {
  const std::vector<float> wanted = behind(logits_of(decoder, ids, prompt, 1), prompt, decoder);
  for (const std::size_t step : {2, 3, 5, 8, 15})
    EXPECT_TRUE(behind(logits_of(decoder, ids, prompt, step), prompt, decoder) == wanted) << what << ", " << step << " together";
}

/// Every way to read them.
void expect_same_all(CachedDecoder& decoder, const Ids& ids, const std::string& what) {
  const std::vector<float> wanted = logits_of(decoder, ids, 1, 1);
  for (const auto& [prompt, step] : {std::pair<std::size_t, std::size_t>{ids.size(), 1}, {ids.size() - 37, 5}, {17, 40}, {3, 8}})
    EXPECT_TRUE(logits_of(decoder, ids, prompt, step) == wanted) << what << ", a prompt of " << prompt << ", then " << step << " together";

  decoder.rewind(0);
  decoder.append(std::span(ids).first(ids.size() - 41));
  const DecoderCache kept = decoder.cache();
  decoder.rewind(0);
  decoder.restore(kept, "kept");
  const std::vector<float> rest = decoder.append(std::span(ids).last(41), 41);
  EXPECT_TRUE(rest == behind(wanted, ids.size() - 41, decoder)) << what << ", behind a kept cache";
}

/// Every way that first reads more than the `length` tokens behind which all keys are turned otherwise, and those that read no more.
void expect_same_beyond(CachedDecoder& decoder, const Ids& ids, std::size_t length, const std::string& what) {
  const std::vector<float> wanted = behind(logits_of(decoder, ids, length + 1, 1), length + 1, decoder);
  for (const auto& [prompt, step] : {std::pair<std::size_t, std::size_t>{ids.size(), 1}, {length + 1, 40}, {length + 1, 5}})
    EXPECT_TRUE(behind(logits_of(decoder, ids, prompt, step), length + 1, decoder) == wanted) << what << ", " << prompt << ", " << step;
  const Ids few(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(length));
  EXPECT_TRUE(logits_of(decoder, few, length, 1) == logits_of(decoder, few, 1, 1)) << what;
}

/// A long prompt beside a short one, then single tokens of both together: the last logits of the long one.
void expect_same_in_batch(CachedDecoder& decoder, BatchedDecoder& many, const Ids& ids, const std::string& what) {
  const std::vector<float> all = logits_of(decoder, ids, ids.size() - 3, 1), wanted = behind(all, ids.size() - 1, decoder);
  const std::span<const std::int32_t> span(ids), first = span.first(9);
  const auto a = many.add(), b = many.add();
  many.append(std::vector<BatchedDecoder::Tokens>{{a, first}, {b, span.first(ids.size() - 3)}});
  for (std::size_t left = 3; left > 1; --left)
    many.append(std::vector<BatchedDecoder::Tokens>{{a, first.first(1)}, {b, span.subspan(ids.size() - left, 1)}});
  const auto last = many.append(std::vector<BatchedDecoder::Tokens>{{b, span.last(1)}, {a, first.first(1)}});
  EXPECT_TRUE(std::ranges::equal(last[0], wanted)) << what;
}

class OfType : public testing::TestWithParam<std::string_view> {};

/// With experts too, of which each token takes two.
TEST_P(OfType, TokensHaveTheSameLogitsHoweverTheyAreRead) {
  const TemporaryFolder folder;
  const Ids ids = some_ids(150);
  const auto context = static_cast<std::int64_t>(ids.size());
  for (const std::int64_t experts : {0, 4}) {
    write_random_llama(folder / "model.gguf", GetParam(), {.layers = 1, .experts = experts});
    const DecoderFiles files = DecoderFiles::open(folder / "model.gguf");
    for (const CacheType cache : cache_types) {
      const std::string what = fmt::format("{} experts, {}", experts, name_of(cache));
      CachedDecoder usual(session(), files, {.context = context, .cache = cache});
      expect_same_few(usual, Ids(ids.begin(), ids.begin() + 90), 60, what);
      CachedDecoder exact(session(), files, {.context = context, .cache = cache, .exact = true});
      expect_same_all(exact, ids, what);
      BatchedDecoder many(session(), files, {.context = context + 20, .tokens = 4 * page_tokens, .cache = cache, .exact = true});
      expect_same_in_batch(exact, many, ids, what + ", in a batch");
    }
  }
}

/// All that weights of models may have: the numbers of eight bits and more that remain are no weights of theirs.
std::vector<std::string_view> weight_types() {
  std::vector<std::string_view> names;
  for (const BlockFormat& format : block_formats())
    if (!format.name.starts_with("I8") && !format.name.starts_with("I16") && !format.name.starts_with("I32") &&
        !format.name.starts_with("I64"))
      names.push_back(format.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Weights, OfType, testing::ValuesIn(weight_types()), [](const auto& info) { return std::string(info.param); });

TEST(EveryLevel, HasTheSameLogitsHoweverTokensAreRead) {
  const TemporaryFolder folder;
  const Ids ids = some_ids(100);
  for (const std::string_view type : {"F32", "F16", "BF16", "Q4_0", "Q6_K"}) {
    write_random_llama(folder / "model.gguf", type, {.layers = 1});
    const DecoderFiles files = DecoderFiles::open(folder / "model.gguf");
    for (const cpu::CpuLevel level : cpu::allowed_levels(cpu::cpu_features())) {
      const Session at_level(Device::cpu(), {.cpu_level = std::string(cpu::to_string(level))});
      for (const CacheType cache : {CacheType::f32, CacheType::q8}) {
        CachedDecoder decoder(at_level, files, {.context = 100, .cache = cache, .exact = true});
        expect_same_all(decoder, ids, fmt::format("{} at {}, {}", type, cpu::to_string(level), name_of(cache)));
      }
    }
  }
}

TEST(EveryPrecision, HasTheSameLogitsHoweverTokensAreRead) {
  const TemporaryFolder folder;
  write_random_llama(folder / "model.gguf", "F32");
  const DecoderFiles files = DecoderFiles::open(folder / "model.gguf");
  for (const Precision precision : {Precision::bf16, Precision::f16, Precision::int8}) {
    const Session narrow(Device::cpu(), {.precision = precision});
    for (const CacheType cache : cache_types) {
      const std::string what = fmt::format("precision {}, {}", static_cast<int>(precision), name_of(cache));
      CachedDecoder usual(narrow, files, {.context = 100, .cache = cache});
      expect_same_few(usual, some_ids(90), 60, what);
      CachedDecoder exact(narrow, files, {.context = 100, .cache = cache, .exact = true});
      expect_same_all(exact, some_ids(100), what);
    }
  }
}

// Whatever is to be exact: any number of tokens is guessed together.
TEST(EncodersWithADecoder, HaveTheSameLogitsHoweverAnAnswerIsRead) {
  const T5Files files = T5Files::open(fixture("hf/t5"));
  const Ids prompt = some_ids(50), answer = some_ids(60, 7);
  for (const Precision precision : {Precision::f32, Precision::bf16, Precision::int8}) {
    CachedT5 model(Session(Device::cpu(), {.precision = precision}), files, 64);
    const auto logits = [&](std::size_t step) {
      model.begin(prompt, {});
      std::vector<float> all;
      for (std::size_t at = 0; at < answer.size(); at += step) {
        const std::vector<float> some = model.append(std::span(answer).subspan(at, step), static_cast<std::int64_t>(step), {});
        all.insert(all.end(), some.begin(), some.end());
      }
      return all;
    };
    const std::vector<float> wanted = logits(1);
    for (const std::size_t step : {4, 15, 20, 60})
      EXPECT_TRUE(logits(step) == wanted) << "precision " << static_cast<int>(precision) << ", " << step << " together";
  }
}

// Keys beyond one chunk of attention, whose sums are merged.
TEST(LongTexts, HaveTheSameLogitsHoweverTheyAreRead) {
  const TemporaryFolder folder;
  write_random_llama(folder / "model.gguf", "Q8_0", {.layers = 1});
  const DecoderFiles files = DecoderFiles::open(folder / "model.gguf");
  const Ids ids = some_ids(2100);
  for (const CacheType cache : {CacheType::f32, CacheType::f16}) {
    CachedDecoder exact(session(), files, {.context = 2100, .cache = cache, .exact = true});
    const std::vector<float> wanted = logits_of(exact, ids, 512, 512);
    for (const auto& [prompt, step] : {std::pair{2090, 1}, {1000, 300}, {1023, 15}})
      EXPECT_TRUE(logits_of(exact, ids, static_cast<std::size_t>(prompt), static_cast<std::size_t>(step)) == wanted) << prompt;
  }
}

class OfFamily : public testing::TestWithParam<const char*> {};

TEST_P(OfFamily, TokensHaveTheSameLogitsHoweverTheyAreRead) {
  const DecoderFiles files = DecoderFiles::open(fixture(GetParam()));
  for (const CacheType cache : cache_types) {
    CachedDecoder usual(session(), files, {.context = 60, .cache = cache});
    if (usual.most_together() > 1) expect_same_few(usual, some_ids(60), 28, std::string(name_of(cache)));
    CachedDecoder exact(session(), files, {.context = 60, .cache = cache, .exact = true});
    if (files.config.length_of_short_factors() == 0) expect_same_all(exact, some_ids(60), std::string(name_of(cache)));
    else
      expect_same_beyond(exact, some_ids(60), static_cast<std::size_t>(files.config.length_of_short_factors()),
                         std::string(name_of(cache)));
  }
}

INSTANTIATE_TEST_SUITE_P(Models, OfFamily,
                         testing::Values("hf/llama", "hf/gemma2", "hf/gemma3", "hf/gpt2", "hf/mixtral", "hf/mamba", "hf/qwen3_next",
                                         "hf/phi3-longrope", "hf_more/mamba2", "hf_more/deepseek_v3", "hf_more/jamba", "hf_more/lfm2",
                                         "hf_more/falcon-new", "gguf_models/qwen2.gguf", "gguf_models/qwen3_moe.gguf", "hf_more/starcoder2",
                                         "hf_more/gpt_neox-serial"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace_if(
                               name.begin(), name.end(), [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
                           return name;
                         });

}  // namespace
}  // namespace rlx::test
