#include <gtest/gtest.h>

#include "base/files/file_writer.h"
#include "fixture.h"
#include "formats/gguf/gguf.h"
#include "formats/gguf/gguf_writer.h"
#include "formats/temporary_folder.h"
#include "message.h"
#include "models/tiny_language_model.h"
#include "rlx/model.h"

namespace rlx::test {
namespace {

constexpr SamplingOptions ours{.temperature = 0.7, .top_k = 40, .top_p = 0.95, .min_p = 0.05};

/// The Llama of the fixtures with these further numbers in its metadata.
std::filesystem::path llama_that_says(const TemporaryFolder& folder, const std::vector<std::pair<std::string, float>>& numbers) {
  const GgufFile file = GgufFile::open(fixture("gguf_models/llama.gguf"));
  GgufMetadata metadata;
  metadata.copy(file.metadata());
  for (const auto& [key, value] : numbers) metadata.set("general.sampling." + key, value);
  metadata.set("general.sampling.top_k", std::int32_t{20});
  GgufWriter writer(folder / "m.gguf", metadata, file.tensors());
  for (const TensorView& tensor : file.tensors()) writer.write(tensor.data);
  writer.commit();
  return folder / "m.gguf";
}

TEST(RecommendedSampling, OfAGgufFileReplacesWhatItNames) {
  const TemporaryFolder folder;
  const SamplingOptions options = load(llama_that_says(folder, {{"temp", 0.5F}, {"penalty_repeat", 1.25F}})).recommended_sampling(ours);
  EXPECT_EQ(options.temperature, 0.5);
  EXPECT_EQ(options.top_k, 20);
  EXPECT_EQ(options.repetition_penalty, 1.25);
  EXPECT_EQ(options.top_p, ours.top_p);
  EXPECT_EQ(options.min_p, ours.min_p);
}

TEST(RecommendedSampling, ThatIsNotAllowedIsRefused) {
  const TemporaryFolder folder;
  const auto path = llama_that_says(folder, {{"top_p", 1.5F}});
  EXPECT_EQ(error_of([&] { load(path); }), path.string() + ": key 'general.sampling.top_p' is 1.5 (allowed: 1e-06..1)");
}

TEST(RecommendedSampling, OfAFolderStandsInItsGenerationConfig) {
  const TinyLanguageModel model(tokenizer_of_words());
  const auto recommended = [&](std::string_view config) {
    write_file(model.path() / "generation_config.json", config);
    return load(model.path()).recommended_sampling(ours);
  };
  const SamplingOptions options = recommended(R"({"do_sample": true, "temperature": 0.6, "top_k": -1, "top_p": null, "min_p": 0.1})");
  EXPECT_EQ(options.temperature, 0.6);
  EXPECT_EQ(options.top_k, 0);
  EXPECT_EQ(options.top_p, ours.top_p);
  EXPECT_EQ(options.min_p, 0.1);
  EXPECT_EQ(recommended(R"({"do_sample": false, "top_k": 3})").temperature, 0);
  EXPECT_EQ(recommended("{}").temperature, ours.temperature);
  EXPECT_NE(error_of([&] { recommended(R"({"min_p": 2})"); }).find("generation_config.json: min_p: expected a number in 0..1, found 2"),
            std::string::npos);
}

}  // namespace
}  // namespace rlx::test
