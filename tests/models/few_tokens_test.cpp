// Tokens that are read one by one and a few at a time behind the same cache, as guesses are checked: the logits have the same bits.
#include <gtest/gtest.h>

#include <tuple>

#include "logits.h"
#include "models/cached_decoder.h"

namespace rlx::test {
namespace {

using Case = std::tuple<const char*, CacheType>;

class FewTokens : public testing::TestWithParam<Case> {};

TEST_P(FewTokens, HaveTheBitsOfOneByOne) {
  const auto [model, cache] = GetParam();
  CachedDecoder decoder(session(), DecoderFiles::open(fixture(model)), {.context = 100, .cache = cache});
  const Ids ids = some_ids(64);
  constexpr std::size_t prompt = 32;
  const auto logits = [&](std::size_t step) {
    decoder.rewind(0);
    decoder.append(std::span(ids).first(prompt));
    std::vector<float> all;
    for (std::size_t at = prompt; at < ids.size(); at += step) {
      const std::size_t count = std::min(step, ids.size() - at);
      const std::vector<float> some = decoder.append(std::span(ids).subspan(at, count), static_cast<std::int64_t>(count));
      all.insert(all.end(), some.begin(), some.end());
    }
    return all;
  };
  const std::vector<float> wanted = logits(1);
  for (const std::size_t step : {2, 3, 5, 8, 16}) EXPECT_TRUE(logits(step) == wanted) << step;
}

INSTANTIATE_TEST_SUITE_P(Of, FewTokens,
                         testing::Combine(testing::Values("hf/llama", "gguf_models/llama.gguf", "gguf_models/qwen2.gguf"),
                                          testing::Values(CacheType::f32, CacheType::f16, CacheType::bf16, CacheType::q8)));

}  // namespace
}  // namespace rlx::test
