// The memory of a long context is that of the tokens it holds.
#include <gtest/gtest.h>

#include "fixture.h"
#include "models/run/caches/cached_decoder.h"
#include "own_memory.h"

namespace rlx::test {
namespace {

/// 2 layers with 2 heads of 16 features: keys and values are 4 caches of 2 heads, each of which has 4 MiB.
constexpr std::int64_t context = 65536, head = context * 16 * 4, caches = 4 * 2 * head;

TEST(CacheMemory, OfALongContextIsThatOfItsTokens) {
  if (own_bytes_in_memory() < 0) GTEST_SKIP() << "the system does not say what is in memory";
  const DecoderFiles files = DecoderFiles::open(fixture("hf/llama"));
  const Session session(Device::cpu(), {.threads = 1, .cache_folder = std::nullopt});
  CachedDecoder decoder(session, files, {.context = context, .chunk = 16});
  const std::int64_t before = own_bytes_in_memory();
  const std::vector<std::int32_t> ids(40, 7);
  decoder.append(ids);
  // A huge page for the first tokens of each head would be half of everything. What runs allocate is little for a model of this size.
  EXPECT_LT(own_bytes_in_memory() - before, caches / 8);
  Array whole(f32, {caches / 4});
  std::ranges::fill(whole.mutable_bytes(), std::byte{1});
  EXPECT_GT(own_bytes_in_memory() - before, caches) << "or this test sees nothing";
}

}  // namespace
}  // namespace rlx::test
