// Sequences of unlike lengths in one run, against each of them alone and against what other software recorded.
#include "models/run/batches/batched_decoder.h"
#include "formats/temporary_folder.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "fixture.h"
#include "formats/tensors/safetensors.h"
#include "models/logits.h"
#include "models/run/caches/cached_decoder.h"
#include "rlx/session.h"

namespace rlx {
namespace {

using test::error_of;
using test::fixture;
using test::Ids;
using test::kernels_of;
using test::largest_difference;
using test::session;
using test::some_ids;

/// A family's fixture with its batch.
struct BatchOfFixture {
  explicit BatchOfFixture(const std::string& name, BatchedDecoder::Options options, const Session& session = test::session())
      : files(DecoderFiles::open(fixture(name))), decoder(session, files, options), name(name) {}
  std::vector<float> append(BatchedDecoder::Sequence sequence, const Ids& ids) {
    const auto logits = decoder.append(std::vector<BatchedDecoder::Tokens>{{sequence, ids}});
    return {logits[0].begin(), logits[0].end()};
  }
  /// In the model's vocabulary.
  Ids some_ids(std::size_t length, std::size_t first) const {
    Ids ids = test::some_ids(length, first);
    for (std::int32_t& id : ids) id %= static_cast<std::int32_t>(files.config.vocab_size);
    return ids;
  }
  /// Mostly the bits are the same. Where a prompt is cut at other places, or one query runs without others, sums run in another order.
  double tolerance() const { return test::f32_distance(name); }

  DecoderFiles files;
  BatchedDecoder decoder;
  std::string name;
};

Ids recorded(const std::string& name, const char* tensor) {
  const Array ids = SafetensorsFile::open(fixture(name + "/expected.safetensors")).array(tensor);
  Ids result;
  for (std::int64_t i = 0; i < ids.size(); ++i) result.push_back(static_cast<std::int32_t>(ids.get_int(i)));
  return result;
}

std::string name_of_fixture(const testing::TestParamInfo<std::string>& each) {
  std::string name = each.param;
  std::replace_if(name.begin(), name.end(), [](char c) { return c == '-' || c == '/'; }, '_');
  return name;
}

/// Once a batch of this fixture's model has run, no number of sequences, length or place makes it compile again.
void expect_no_compilation(const std::string& name) {
  const Session session;
  BatchOfFixture batch(name, {.context = 300, .chunk = 64, .tokens = 2000}, session);
  batch.append(batch.decoder.add(), {1});
  const auto compiled = kernels_of(session);
  for (const std::size_t length : {2U, 64U, 65U, 129U}) batch.append(batch.decoder.add(), some_ids(length, 1));
  std::vector<BatchedDecoder::Tokens> all;
  const Ids one{4}, three{1, 2, 3};
  for (BatchedDecoder::Sequence each = 0; each < 5; ++each) all.push_back({each, each % 2 == 0 ? one : three});
  batch.decoder.append(all);
  EXPECT_EQ(kernels_of(session), compiled);
}

class BatchedFamilies : public testing::TestWithParam<std::string> {};

// The recorded text is continued while others join and leave; what they see of it is the recorded tokens.
TEST_P(BatchedFamilies, RecordedGreedyTokensAmongOthersThatJoinAndLeave) {
  const Ids prompt = recorded(GetParam(), "prompt_ids"), greedy = recorded(GetParam(), "greedy_ids");
  const auto length = static_cast<std::int64_t>(greedy.size());
  BatchOfFixture batch(GetParam(), {.context = length + 8, .chunk = 16, .tokens = 4 * 2 * page_tokens});
  const auto guest = batch.decoder.add(), first = batch.decoder.add();
  const Ids guest_prompt = batch.some_ids(5, 3);
  auto logits = batch.decoder.append(std::vector<BatchedDecoder::Tokens>{{guest, guest_prompt}, {first, prompt}});
  Ids mine = prompt, late = prompt;
  mine.push_back(greedy_choice(logits[1]));
  BatchedDecoder::Sequence second = -1;
  while (mine.size() < greedy.size() || late.size() < greedy.size()) {
    std::vector<BatchedDecoder::Tokens> tokens;
    std::vector<Ids*> texts;
    const bool joins = mine.size() == prompt.size() + 2;
    if (joins) second = batch.decoder.add();
    if (joins) tokens.push_back({second, prompt}), texts.push_back(&late);
    else if (second >= 0 && late.size() < greedy.size()) tokens.push_back({second, std::span(late).last(1)}), texts.push_back(&late);
    if (mine.size() < greedy.size()) tokens.push_back({first, std::span(mine).last(1)}), texts.push_back(&mine);
    if (mine.size() == prompt.size() + 4) batch.decoder.remove(guest);
    logits = batch.decoder.append(tokens);
    for (std::size_t i = 0; i < texts.size(); ++i) texts[i]->push_back(greedy_choice(logits[i]));
  }
  EXPECT_EQ(mine, greedy);
  EXPECT_EQ(late, greedy);
}

TEST_P(BatchedFamilies, EachIsAsItIsAlone) {
  BatchOfFixture batch(GetParam(), {.context = 48, .chunk = 24, .tokens = 3 * page_tokens});
  CachedDecoder alone(session(), batch.files, {.context = 48});
  const std::vector<Ids> prompts{batch.some_ids(17, 1), batch.some_ids(3, 2), batch.some_ids(31, 3)}, next{{9}, {7, 8, 9, 10}, {11, 12}};
  std::vector<BatchedDecoder::Tokens> first, second;
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    const auto sequence = batch.decoder.add();
    first.push_back({sequence, prompts[i]}), second.push_back({sequence, next[i]});
  }
  const auto behind_prompts = batch.decoder.append(first), behind_next = batch.decoder.append(second);
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    alone.rewind(0);
    EXPECT_LE(largest_difference(behind_prompts[i], alone.append(prompts[i])), batch.tolerance()) << i;
    EXPECT_LE(largest_difference(behind_next[i], alone.append(next[i])), batch.tolerance()) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Families, BatchedFamilies,
                         testing::Values("hf/llama", "hf/llama-tied", "hf/mistral", "hf/qwen2", "hf/qwen3", "hf/gemma2", "hf/gemma3",
                                         "hf/phi3", "hf/phi3-longrope", "hf/gpt2", "hf/granite", "hf/olmo2", "hf/mixtral",
                                         "hf_more/deepseek_v2", "hf_more/deepseek_v3", "hf_more/falcon-new", "hf_more/falcon-alibi",
                                         "hf_more/cohere", "hf_more/gpt_neox", "hf_more/qwen2_moe", "hf/mamba", "hf/qwen3_next",
                                         "hf_more/falcon_mamba", "hf_more/mamba2", "hf_more/mamba2-limited", "hf_more/jamba",
                                         "hf_more/lfm2", "hf_more/lfm2_moe", "hf_more/qwen3_5"),
                         name_of_fixture);

class RecurrentBatches : public testing::TestWithParam<std::string> {};

// In the middle of a page; the copy reads nothing again.
TEST_P(RecurrentBatches, CopiesHaveStatesOfTheirOwn) {
  BatchOfFixture batch(GetParam(), {.context = 300, .chunk = 64, .tokens = 900});
  CachedDecoder alone(session(), batch.files, {.context = 300, .chunk = 64});
  const Ids prompt = some_ids(150, 1), mine{3, 4}, theirs{5}, next{9};
  const auto from = batch.decoder.add();
  batch.append(from, prompt);
  const auto copy = batch.decoder.copy(from), untouched = batch.decoder.copy(copy);
  const auto logits = batch.decoder.append(std::vector<BatchedDecoder::Tokens>{{copy, theirs}, {from, mine}});
  batch.decoder.remove(from);
  const auto behind = [&](const Ids& ids) {
    alone.rewind(0);
    alone.append(prompt);
    return alone.append(ids);
  };
  EXPECT_LE(largest_difference(logits[0], behind(theirs)), batch.tolerance());
  EXPECT_LE(largest_difference(logits[1], behind(mine)), batch.tolerance());
  EXPECT_LE(largest_difference(batch.append(untouched, next), behind(next)), batch.tolerance());
  EXPECT_LE(largest_difference(batch.append(copy, next), behind({5, 9})), batch.tolerance());
}

TEST_P(RecurrentBatches, ReadAgainWhatIsLeftWhenTokensAreForgotten) {
  BatchOfFixture batch(GetParam(), {.context = 300, .chunk = 64, .tokens = 900});
  CachedDecoder alone(session(), batch.files, {.context = 300, .chunk = 64});
  const Ids prompt = some_ids(140, 1), next{9, 8};
  const auto sequence = batch.decoder.add(), other = batch.decoder.add();
  batch.append(sequence, prompt), batch.append(other, some_ids(9, 2));
  batch.decoder.rewind(sequence, 131);
  alone.append(std::span(prompt).first(131));
  EXPECT_LE(largest_difference(batch.append(sequence, next), alone.append(next)), batch.tolerance());
}

TEST_P(RecurrentBatches, NeitherNumbersNorLengthsCompile) { expect_no_compilation(GetParam()); }

INSTANTIATE_TEST_SUITE_P(Families, RecurrentBatches,
                         testing::Values("hf/mamba", "hf/qwen3_next", "hf_more/mamba2", "hf_more/jamba", "hf_more/lfm2"), name_of_fixture);

// More sequences than run together, fewer than there are tokens in a run, and one whose caches no page is left for.
TEST(BatchedDecoder, ManyRecurrentSequencesRunInTurn) {
  BatchOfFixture batch("hf_more/lfm2", {.context = 40, .chunk = 100, .tokens = 71 * page_tokens});
  CachedDecoder alone(session(), batch.files, {.context = 40});
  std::vector<Ids> prompts;
  for (std::size_t i = 0; i < 71; ++i) prompts.push_back(some_ids(1 + i % 4, i));
  std::vector<BatchedDecoder::Tokens> tokens;
  for (const Ids& prompt : prompts) tokens.push_back({batch.decoder.add(), prompt});
  batch.decoder.append(tokens);
  const Ids one{9};
  for (auto& each : tokens) each.ids = one;
  const auto logits = batch.decoder.append(tokens);
  for (std::size_t i = 0; i < prompts.size(); i += 5) {
    alone.rewind(0);
    alone.append(prompts[i]);
    EXPECT_LE(largest_difference(logits[i], alone.append(one)), batch.tolerance()) << i;
  }
  EXPECT_EQ(error_of([&] { batch.decoder.copy(3); }), "the caches of the batch are full: a copy needs a page of 128 tokens, 0 are free");
}

// Over many pages, and over the keys that one task of attention reads.
TEST(BatchedDecoder, LongSequencesAreAsTheyAreAlone) {
  BatchOfFixture batch("hf/llama", {.context = 1300, .chunk = 200, .tokens = 3000});
  CachedDecoder alone(session(), batch.files, {.context = 1300, .chunk = 200});
  const std::vector<Ids> prompts{some_ids(1290, 1), some_ids(127, 2), some_ids(300, 3), some_ids(1, 4)};
  std::vector<BatchedDecoder::Tokens> tokens;
  for (const Ids& prompt : prompts) tokens.push_back({batch.decoder.add(), prompt});
  batch.decoder.append(tokens);
  const Ids one{9};
  for (auto& each : tokens) each.ids = one;
  std::vector<BatchedDecoder::Logits> steps;
  for (int step = 0; step < 3; ++step) steps.push_back(batch.decoder.append(tokens));
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    alone.rewind(0);
    alone.append(prompts[i]);
    for (const auto& logits : steps) EXPECT_LE(largest_difference(logits[i], alone.append(one)), batch.tolerance()) << i;
  }
}

TEST(BatchedDecoder, NeitherNumbersNorLengthsNorPlacesCompile) { expect_no_compilation("hf/llama"); }

TEST(BatchedDecoder, CopiesSharePagesAndGoTheirOwnWays) {
  BatchOfFixture batch("hf/llama", {.context = 512, .chunk = 64, .tokens = 512});
  CachedDecoder alone(session(), batch.files, {.context = 512, .chunk = 64});
  const Ids prompt = some_ids(260, 1), mine{3, 4}, theirs{5};
  const auto from = batch.decoder.add();
  batch.append(from, prompt);
  const auto copy = batch.decoder.copy(from);  // takes the fourth page, as that behind the full ones is its own
  const std::string full = "the caches of the batch are full: a copy needs a page of 128 tokens, 0 are free";
  EXPECT_EQ(error_of([&] { batch.decoder.copy(from); }), full);
  const auto logits = batch.decoder.append(std::vector<BatchedDecoder::Tokens>{{from, mine}, {copy, theirs}});
  alone.append(prompt);
  EXPECT_LE(largest_difference(logits[0], alone.append(mine)), batch.tolerance());
  alone.rewind(260);
  EXPECT_LE(largest_difference(logits[1], alone.append(theirs)), batch.tolerance());
  batch.decoder.remove(from);
  const auto again = batch.decoder.copy(copy);  // with the page that was given back
  EXPECT_EQ(error_of([&] { batch.decoder.copy(copy); }), full);
  batch.decoder.remove(again);
  EXPECT_LE(largest_difference(batch.append(copy, mine), alone.append(mine)), batch.tolerance());
}

TEST(BatchedDecoder, WhatIsForgottenInASharedPageStaysWithTheOther) {
  BatchOfFixture batch("hf/llama", {.context = 512, .chunk = 256, .tokens = 1024});
  const Ids prompt = some_ids(256, 1), other = some_ids(20, 7), next{9};
  const auto from = batch.decoder.add();
  batch.append(from, prompt);
  const auto copy = batch.decoder.copy(from), untouched = batch.decoder.copy(from);
  batch.decoder.rewind(copy, 200);
  batch.append(copy, other);
  const auto logits = batch.decoder.append(std::vector<BatchedDecoder::Tokens>{{from, next}, {untouched, next}});
  EXPECT_LE(largest_difference(logits[0], logits[1]), 0);
  CachedDecoder alone(session(), batch.files, {.context = 512});
  alone.append(prompt);
  EXPECT_LE(largest_difference(logits[0], alone.append(next)), batch.tolerance());
}

TEST(BatchedDecoder, TokensThatDoNotFitAreRefusedAndNothingChanges) {
  BatchOfFixture batch("hf/llama", {.context = 200, .chunk = 64, .tokens = 256});
  const auto a = batch.decoder.add(), b = batch.decoder.add();
  batch.append(a, some_ids(100, 1));
  const auto append = [&](std::vector<BatchedDecoder::Tokens> tokens) { return error_of([&] { batch.decoder.append(tokens); }); };
  const Ids many = some_ids(101, 1), full = some_ids(130, 1), unknown{3, 256}, one{1};
  EXPECT_EQ(append({{a, many}}), "sequence 0: 201 tokens are more than the context holds (allowed: up to 200)");
  EXPECT_EQ(append({{a, one}, {b, full}}), "the caches of the batch are full: 2 pages of 128 tokens are needed, 1 are free");
  EXPECT_EQ(append({{b, unknown}}), "sequence 1: token 256 is not in the vocabulary (allowed: 0..255)");
  EXPECT_EQ(append({{b, {}}}), "sequence 1: there are no tokens to continue");
  EXPECT_EQ(append({{a, one}, {a, one}}), "sequence 0 is named twice in one call");
  EXPECT_EQ(append({{7, one}}), "sequence 7 is not in the batch");
  EXPECT_EQ(batch.decoder.ids(a).size(), 100U);
  EXPECT_TRUE(batch.decoder.ids(b).empty());
  EXPECT_NE(error_of([] { BatchOfFixture("hf/modernbert", {}); }).find("modernbert: this model is an encoder: it makes no text"),
            std::string::npos);
}

TEST(BatchedDecoder, HoldsWhatWasReadBeforeItWasCancelled) {
  for (const char* name : {"hf/llama", "hf/mamba"}) {
    BatchOfFixture batch(name, {.context = 200, .chunk = 64, .tokens = 1024});
    const auto a = batch.decoder.add(), b = batch.decoder.add(), whole = batch.decoder.add();
    const Ids prompt = some_ids(150, 1), other = some_ids(20, 2);
    int runs = 2;
    const auto cancelled = [&] { return --runs < 0; };
    EXPECT_TRUE(batch.decoder.append(std::vector<BatchedDecoder::Tokens>{{a, other}, {b, prompt}}, cancelled).empty());
    EXPECT_EQ(batch.decoder.ids(a).size(), other.size()) << name;
    const std::size_t read = batch.decoder.ids(b).size();
    EXPECT_TRUE(read > 0 && read < prompt.size()) << read;
    const auto rest = batch.append(b, Ids(prompt.begin() + static_cast<std::ptrdiff_t>(read), prompt.end()));
    EXPECT_LE(largest_difference(rest, batch.append(whole, prompt)), batch.tolerance()) << name;
  }
}

// The body of the op gathers the pages; the claim reads them where they lie.
TEST(BatchedDecoder, PagesAreReadWhereTheyLie) {
  SessionOptions plain;
  plain.claims = false;
  const Session without(Device::cpu(), plain);
  BatchOfFixture batch("hf/llama", {.context = 300, .chunk = 200, .tokens = 600}),
      gathered("hf/llama", {.context = 300, .chunk = 200, .tokens = 600}, without);
  for (BatchOfFixture* each : {&batch, &gathered}) each->decoder.add(), each->decoder.add();
  const Ids longer = some_ids(290, 1), shorter = some_ids(20, 2);
  const std::vector<BatchedDecoder::Tokens> tokens{{0, longer}, {1, shorter}};
  const auto seen = batch.decoder.append(tokens), expected = gathered.decoder.append(tokens);
  for (std::size_t i = 0; i < 2; ++i) EXPECT_LE(largest_difference(seen[i], expected[i]), batch.tolerance()) << i;
  const Graph graph = decoder_graph(batch.files.config, {.pages = 4, .capacity = 300, .chunk = 64});
  const std::string launches = session().compile(graph).dump(Stage::lir);
  EXPECT_NE(launches.find("state_update"), std::string::npos);
  EXPECT_EQ(launches.find("128*P,"), std::string::npos) << launches;
}

}  // namespace
}  // namespace rlx
