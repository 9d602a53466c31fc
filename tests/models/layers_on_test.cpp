// Models whose layers are computed on several devices.
#include <gtest/gtest.h>

#include "backends/dummy_device.h"
#include "formats/temporary_folder.h"
#include "message.h"
#include "models/answers.h"
#include "models/random_llama.h"
#include "models/run/batches/batched_decoder.h"
#include "models/run/caches/cached_decoder.h"
#include "models/tiny_language_model.h"

namespace rlx::test {
namespace {

using Ids = std::vector<std::int32_t>;

/// What follows the recorded prompt, and the logits behind the last token.
std::pair<Ids, std::vector<float>> continued(CachedDecoder& decoder, const Ids& prompt) {
  constexpr std::int64_t tokens = 12;
  Ids answer;
  std::vector<float> logits = decoder.append(prompt);
  for (std::int64_t i = 0; i < tokens; ++i) {
    answer.push_back(greedy_choice(logits));
    logits = decoder.append(std::span(answer).last(1));
  }
  return {answer, logits};
}

class LayersOnDevices : public testing::TestWithParam<const char*> {};

TEST_P(LayersOnDevices, SayTheSameTokensAsOnOne) {
  const DecoderFiles files = DecoderFiles::open(fixture(GetParam()));
  const Session here = session_on(Device::cpu()), there = session_on(dummy_device());
  Ids prompt;
  for (std::int32_t i = 0; i < 9; ++i) prompt.push_back((i * 37 + 5) % static_cast<std::int32_t>(files.config.vocab_size));
  const auto decoder = [&](std::vector<LayersOn> layers_on) {
    return CachedDecoder(here, files, {.context = 40, .chunk = 8, .layers_on = std::move(layers_on)});
  };
  CachedDecoder whole = decoder({}), divided = decoder({{there, 1}});
  const auto [wanted, wanted_logits] = continued(whole, prompt);
  DummyMemory& memory = *dummy_backend().memory();
  const auto [seen, logits] = continued(divided, prompt);
  EXPECT_EQ(seen, wanted);
  ASSERT_EQ(logits.size(), wanted_logits.size());
  for (std::size_t i = 0; i < logits.size(); ++i) ASSERT_NEAR(logits[i], wanted_logits[i], 1e-3) << i;
  const std::int64_t down = memory.downloaded;
  divided.append(std::span(seen).first(1));
  EXPECT_EQ(memory.downloaded - down, 4 * files.config.hidden_size);  // the hidden state alone
  divided.rewind(3);
  whole.rewind(3);
  EXPECT_EQ(continued(divided, prompt).first, continued(whole, prompt).first);
}

INSTANTIATE_TEST_SUITE_P(Models, LayersOnDevices,
                         testing::Values("hf/llama", "hf/llama-tied", "hf/gpt2", "hf/gemma2", "hf/gemma3", "hf/mixtral", "hf/phi3",
                                         "hf/qwen3", "hf/qwen3_next", "hf/mamba", "hf/olmo2", "hf/granite", "hf_more/cohere",
                                         "hf_more/deepseek_v3", "hf_more/falcon-new", "hf_more/jamba", "hf_more/lfm2", "hf_more/mamba2",
                                         "hf_more/gpt_neox"),
                         [](const auto& info) {
                           std::string name = info.param;
                           for (char& c : name)
                             if (c == '/' || c == '-') c = '_';
                           return name;
                         });

TEST(LayersOn, AllOfThemMayBeNamedAndSequencesRunTogether) {
  const DecoderFiles files = DecoderFiles::open(fixture("hf/llama"));
  const Session here = session_on(Device::cpu()), there = session_on(dummy_device());
  const Ids prompt = recorded_ids("prompt_ids"), greedy = recorded_ids("greedy_ids");
  BatchedDecoder decoder(here, files, {.context = 64, .tokens = 512, .layers_on = {{here, 1}, {there, 1}}});
  const auto one = decoder.add(), other = decoder.copy(one);
  const auto logits = decoder.append(std::vector<BatchedDecoder::Tokens>{{one, prompt}, {other, greedy}});
  EXPECT_EQ(greedy_choice(logits[0]), greedy[prompt.size()]);
  EXPECT_EQ(greedy_choice(decoder.append(std::vector<BatchedDecoder::Tokens>{{one, std::span(greedy).subspan(prompt.size(), 1)}})[0]),
            greedy[prompt.size() + 1]);
}

TEST(LayersOn, MoreThanThereAreAreRefused) {
  const DecoderFiles files = DecoderFiles::open(fixture("hf/llama"));
  const Session here = session_on(Device::cpu());
  EXPECT_EQ(error_of([&] { CachedDecoder(here, files, {.context = 40, .layers_on = {{here, 1}, {here, 2}}}); }),
            "layers on cpu: 2 (allowed: 1..1, as the model has 2)");
  EXPECT_EQ(error_of([&] { CachedDecoder(here, files, {.context = 40, .layers_on = {{here, 0}}}); }),
            "layers on cpu: 0 (allowed: 1..2, as the model has 2)");
}

/// A device with so much memory while it lives.
class MemoryOf {
 public:
  explicit MemoryOf(std::int64_t bytes) { dummy_backend().memory()->all = dummy_backend().memory()->taken + bytes; }
  MemoryOf(const MemoryOf&) = delete;
  MemoryOf& operator=(const MemoryOf&) = delete;
  ~MemoryOf() { dummy_backend().memory()->all = 0; }
};

TEST(DeviceMemory, WhatDoesNotFitSaysHowMuchIsThereAndWhatWould) {
  const DecoderFiles files = DecoderFiles::open(fixture("gguf_models/llama.gguf"));
  const Session there = session_on(dummy_device());
  const MemoryOf little(12 << 20);
  const std::string error = error_of([&] { CachedDecoder(there, files, {.context = 32768, .chunk = 1}); });
  for (const char* part : {"llama.gguf: 2 layers take ", " of dummy (weights 369.2 KiB, caches 16.0 MiB, scratch ", "), where 12.0 MiB of ",
                           " are free (what may fit: --layers-on dummy=1, a shorter --context, weights of fewer bits by 'rlx quantize')"})
    EXPECT_NE(error.find(part), std::string::npos) << error;
  const CachedDecoder one(session_on(Device::cpu()), files, {.context = 32768, .chunk = 1, .layers_on = {{there, 1}}});
  EXPECT_EQ(one.memory_needs().size(), 2u);
}

/// Weights in blocks stay as they are: the plan counts them so.
TEST(DeviceMemory, IsTakenAsPlanned) {
  const TemporaryFolder folder;
  const Session there = session_on(dummy_device());
  DummyMemory& memory = *dummy_backend().memory();
  for (const char* type : {"F32", "Q4_0", "Q4_K", "Q8_0"}) {
    SCOPED_TRACE(type);
    write_random_llama(folder / "model.gguf", type);
    const DecoderFiles files = DecoderFiles::open(folder / "model.gguf");
    const std::int64_t before = memory.taken;
    CachedDecoder decoder(there, files, {.context = 256, .chunk = 16});
    const auto planned = static_cast<double>(decoder.memory_needs().at(0).all());
    decoder.append(Ids(16, 3));
    memory.most_taken = memory.taken.load();
    decoder.append(Ids(16, 5));
    EXPECT_NEAR(static_cast<double>(memory.most_taken - before), planned, 0.05 * planned);
  }
}

}  // namespace
}  // namespace rlx::test
