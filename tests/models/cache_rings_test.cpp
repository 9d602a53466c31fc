// Layers that see a window of the tokens before them keep no more: against caches of many sequences, which keep all.
#include <gtest/gtest.h>

#include "fixture.h"
#include "message.h"
#include "models/layers/decoder_cache.h"
#include "models/logits.h"
#include "models/run/batches/batched_decoder.h"
#include "models/run/caches/cached_decoder.h"
#include "rlx/session.h"

namespace rlx {
namespace {

using test::error_of;
using test::f32_distance;
using test::fixture;
using test::Ids;
using test::largest_difference;
using test::session;
using test::some_ids;

constexpr std::int64_t context = 700, chunk = 16;  // windows of up to 100 tokens then take two pages

/// The logits behind `ids`, from a cache of all of them.
class Whole {
 public:
  explicit Whole(const DecoderFiles& files) : decoder_(session(), files, {.context = context, .chunk = 512}) {}
  std::vector<float> behind(const Ids& ids) {
    const auto sequence = decoder_.add();
    auto logits = decoder_.append(std::vector<BatchedDecoder::Tokens>{{sequence, ids}});
    decoder_.remove(sequence);
    return {logits[0].begin(), logits[0].end()};
  }

 private:
  BatchedDecoder decoder_;
};

class Rings : public testing::TestWithParam<std::string> {
 protected:
  void expect_all(const char* when) {
    const Ids all(ring_.ids().begin(), ring_.ids().end()), next{9};
    Ids longer = all;
    longer.push_back(next[0]);
    EXPECT_LE(largest_difference(ring_.append(next), whole_.behind(longer)), tolerance_) << when;
  }

  const DecoderFiles files_ = DecoderFiles::open(fixture(GetParam()));
  CachedDecoder ring_{session(), files_, {.context = context, .chunk = chunk}};
  Whole whole_{files_};
  // A token of a sequence that runs among others is computed with products of other sizes, and sums over keys are taken in another order.
  const double tolerance_ = f32_distance(GetParam());
};

TEST_P(Rings, GiveTheLogitsOfTheWholeCache) {
  Ids all;
  for (const std::size_t length : {20U, 240U, 1U, 15U, 300U, 1U, 1U, 100U}) {  // round the ring more than once
    const Ids more = some_ids(length, all.size());
    all.insert(all.end(), more.begin(), more.end());
    EXPECT_LE(largest_difference(ring_.append(more), whole_.behind(all)), tolerance_) << all.size();
  }
}

TEST_P(Rings, AreTakenBackOrReadAgain) {
  ring_.append(some_ids(600));
  ring_.rewind(600 - chunk);
  expect_all("as far as the ring reaches");
  ring_.rewind(580);
  ring_.append(some_ids(30, 7));
  ring_.rewind(600);
  expect_all("behind what was forgotten before");
  ring_.rewind(590);
  ring_.rewind(300);
  expect_all("farther back than the ring reaches");
  ring_.rewind(0);
  ring_.append(some_ids(3));
  expect_all("from the beginning");
}

TEST_P(Rings, AreSavedAndRestoredWithWhatTheirWindowsSee) {
  CachedDecoder large(session(), files_, {.context = context, .chunk = context});  // too long for rings
  ring_.append(some_ids(400));
  large.append(some_ids(400));
  const DecoderCache of_ring = ring_.cache(), of_large = large.cache();
  for (CachedDecoder* each : {&ring_, &large})
    for (const DecoderCache* cache : {&of_ring, &of_large}) {
      each->append(some_ids(90, 3));
      each->restore(*cache, "cache");
      Ids all = some_ids(400), next{9};
      all.push_back(9);
      EXPECT_LE(largest_difference(each->append(next), whole_.behind(all)), tolerance_);
      each->rewind(395);
      all.resize(395);
      all.push_back(9);
      EXPECT_LE(largest_difference(each->append(next), whole_.behind(all)), tolerance_) << "taken back behind what was saved";
    }
}

INSTANTIATE_TEST_SUITE_P(Families, Rings,
                         testing::Values("hf/mistral", "hf/qwen2", "hf/gemma2", "hf/gemma3", "hf/phi3", "hf_more/olmo3",
                                         "hf_more/starcoder2"),
                         [](const auto& each) {
                           std::string name = each.param;
                           std::replace_if(name.begin(), name.end(), [](char c) { return c == '-' || c == '/'; }, '_');
                           return name;
                         });

/// Sequences whose pages go back and forth between them.
class BatchedWindows : public testing::TestWithParam<std::string> {
 protected:
  using Sequence = BatchedDecoder::Sequence;

  /// Appends tokens to each of some sequences and compares what is behind them.
  void expect_all(const std::vector<std::pair<Sequence, Ids>>& more, const char* when) {
    std::vector<BatchedDecoder::Tokens> tokens;
    for (const auto& [sequence, ids] : more) tokens.push_back({sequence, ids});
    const auto logits = batch_.append(tokens);
    for (std::size_t i = 0; i < more.size(); ++i) {
      const auto ids = batch_.ids(more[i].first);
      EXPECT_LE(largest_difference(logits[i], whole_.behind({ids.begin(), ids.end()})), tolerance_) << when << " " << i;
    }
  }

  const DecoderFiles files_ = DecoderFiles::open(fixture(GetParam()));
  BatchedDecoder batch_{session(), files_, {.context = context, .chunk = chunk, .tokens = 18 * page_tokens}};
  Whole whole_{files_};
  // A token of a sequence that runs among others is computed with products of other sizes, and sums over keys are taken in another order.
  const double tolerance_ = f32_distance(GetParam());
};

TEST_P(BatchedWindows, GiveTheLogitsOfTheWholeCache) {
  const Sequence a = batch_.add(), b = batch_.add();
  for (const std::size_t length : {1U, 130U, 5U, 250U})
    expect_all({{a, some_ids(length, 3)}, {b, some_ids(258 - length, 8)}}, "unlike lengths");
  batch_.remove(a);
  const Sequence c = batch_.add();
  expect_all({{b, {9}}, {c, some_ids(400, 5)}}, "one that joins late");
}

TEST_P(BatchedWindows, AreSharedUntilNobodySeesThem) {
  const Sequence root = batch_.add();
  expect_all({{root, some_ids(256)}}, "root");
  const Sequence a = batch_.copy(root), b = batch_.copy(root);
  expect_all({{a, some_ids(200, 1)}, {b, {4}}}, "copies at the end of a page");
  const Sequence c = batch_.copy(a);
  batch_.remove(a);
  const Sequence other = batch_.add();
  expect_all({{other, some_ids(300, 9)}, {root, {5}}}, "what was given back is taken");
  expect_all({{c, some_ids(20, 2)}, {b, some_ids(150, 6)}, {root, some_ids(3)}}, "copies in the middle of one");
}

TEST_P(BatchedWindows, AreReadAgainWhereTheyAreGone) {
  const Sequence a = batch_.add();
  expect_all({{a, some_ids(500)}}, "at first");
  const Sequence b = batch_.copy(a);
  batch_.rewind(a, 499);
  expect_all({{a, {7, 8}}, {b, {7}}}, "one token back");
  batch_.rewind(a, 300);
  expect_all({{a, {9}}, {b, {3}}}, "farther back than the window");
  batch_.rewind(b, 0);
  expect_all({{b, some_ids(40)}}, "from the beginning");
}

INSTANTIATE_TEST_SUITE_P(Families, BatchedWindows, testing::Values("hf/mistral", "hf/gemma3", "hf/phi3"),
                         [](const auto& each) { return each.param.substr(3); });

// All layers of Mistral's fixture see 7 tokens: two pages for a sequence of any length.
TEST(WindowPages, TakeNoPagesForTokensThatNobodySees) {
  const DecoderFiles files = DecoderFiles::open(fixture("hf/mistral"));
  BatchedDecoder batch(session(), files, {.context = context, .chunk = chunk, .tokens = 3 * page_tokens});
  Whole whole(files);
  const auto sequence = batch.add();
  const Ids ids = some_ids(600);
  const auto logits = batch.append(std::vector<BatchedDecoder::Tokens>{{sequence, ids}});
  EXPECT_LE(largest_difference(logits[0], whole.behind(ids)), f32_distance("hf/mistral"));
  for (int free = 0; free < 2; ++free) batch.copy(sequence);  // each takes a page
  EXPECT_NE(error_of([&] { batch.copy(sequence); }).find("0 are free"), std::string::npos);
}

std::int64_t tokens_of_states(const DecoderConfig& config, const DecoderGraphOptions& options) {
  std::int64_t tokens = 0;
  const Graph graph = decoder_graph(config, options);
  for (const auto& [input, value] : graph.inputs())
    if (input.kind == InputKind::state) tokens += input.type.size().value() / (config.kv_heads * config.head_size);
  return tokens;
}

// Gemma 3's fixture has windows of 5 in all layers but one in six; keys and values.
TEST(RingStates, KeepTheWindowARunAndTheRestOfTheirPages) {
  const DecoderConfig config = DecoderFiles::open(fixture("hf/gemma3")).config;
  std::int64_t windows = 0;
  for (const DecoderLayer& layer : config.layers) windows += layer.window > 0;
  const auto layers = static_cast<std::int64_t>(config.layers.size());
  ASSERT_TRUE(windows > 0 && windows < layers);
  const std::int64_t expected = 2 * (windows * 6 * page_tokens + (layers - windows) * 8192);  // 4 + 512 tokens that begin anywhere
  EXPECT_EQ(tokens_of_states(config, {.capacity = 8192, .chunk = 512}), expected);
  EXPECT_EQ(tokens_of_states(config, {.capacity = 600, .chunk = 512}), 2 * layers * 600);
  EXPECT_EQ(tokens_of_states(config, {.capacity = 8192, .chunk = 512, .cache = CacheType::f16}), expected);
}

// The claim reads the pages where they lie.
TEST(RingStates, AreNotGathered) {
  const DecoderConfig config = DecoderFiles::open(fixture("hf/mistral")).config;
  for (const CacheType type : {CacheType::f32, CacheType::f16, CacheType::q8}) {
    const Graph graph = decoder_graph(config, {.capacity = context, .chunk = chunk, .cache = type});
    const std::string launches = session().compile(graph).dump(Stage::lir);
    EXPECT_NE(launches.find("state_update"), std::string::npos);
    EXPECT_EQ(launches.find(fmt::format(",{},", 2 * page_tokens)), std::string::npos) << launches;
    const Graph paged = decoder_graph(config, {.pages = 9, .capacity = context, .chunk = chunk, .cache = type});
    const std::string of_many = session().compile(paged).dump(Stage::lir);
    EXPECT_NE(of_many.find("P7"), std::string::npos);
    EXPECT_EQ(of_many.find("128*P7,"), std::string::npos) << of_many;
  }
}

}  // namespace
}  // namespace rlx
