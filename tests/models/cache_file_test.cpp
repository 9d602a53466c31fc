#include <gtest/gtest.h>

#include "fixture.h"
#include "formats/temporary_folder.h"
#include "message.h"
#include "rlx/io.h"
#include "rlx/model.h"

namespace rlx::test {
namespace {

constexpr std::int32_t cached_prompt[] = {3, 17, 88, 120, 5, 9, 44, 101, 7}, next_ids[] = {12};

Model open(const std::string& name, std::int64_t context = 32, CacheType cache = CacheType::usual) {
  return load(fixture(name), {.context = context, .cache = cache});
}

class CacheFile : public testing::TestWithParam<std::string> {};

TEST_P(CacheFile, GivesTheLogitsOfTheCacheThatWasSaved) {
  for (const CacheType type : {CacheType::f32, CacheType::f16, CacheType::bf16, CacheType::q8}) {
    SCOPED_TRACE(name_of(type));
    const TemporaryFolder folder;
    Model model = open(GetParam(), 32, type), restored = open(GetParam(), 32, type), longer = open(GetParam(), 48, type);
    model.append(cached_prompt);
    model.save_cache(folder / "cache");
    restored.append(next_ids);  // which is replaced
    for (Model* each : {&restored, &longer}) {
      each->load_cache(folder / "cache");
      EXPECT_TRUE(std::ranges::equal(each->ids(), cached_prompt));
    }
    const auto expected = model.append(next_ids);
    EXPECT_EQ(restored.append(next_ids), expected);
    EXPECT_EQ(longer.append(next_ids), expected);
  }
}

INSTANTIATE_TEST_SUITE_P(Families, CacheFile,
                         testing::Values("hf/llama", "hf/gemma3", "hf/gpt2", "hf/phi3-longrope", "hf/mamba", "hf/qwen3_next",
                                         "hf_more/mamba2", "hf_more/jamba", "hf_more/lfm2", "hf_more/falcon_mamba", "hf_more/deepseek_v2",
                                         "hf_more/deepseek_v3"),
                         [](const auto& each) {
                           std::string name = each.param;
                           std::replace_if(name.begin(), name.end(), [](char c) { return c == '-' || c == '/'; }, '_');
                           return name;
                         });

TEST(CacheFileNotes, ComeBackWithTheCache) {
  const TemporaryFolder folder;
  Model model = open("hf/llama");
  model.append(cached_prompt);
  const std::map<std::string, std::string> notes{{"format", "mine"}, {"text", "\xC3\xA4\n\"x\""}};
  model.save_cache(folder / "cache", notes);
  EXPECT_EQ(open("hf/llama").load_cache(folder / "cache"), notes);
}

class WrongCacheFile : public testing::Test {
 protected:
  WrongCacheFile() {
    model_.append(cached_prompt);
    model_.save_cache(file_);
  }
  std::string error() {
    std::string message = error_of([&] { model_.load_cache(file_); });
    EXPECT_EQ(message.substr(0, file_.string().size()), file_.string());
    return message.substr(std::min(message.size(), file_.string().size()));
  }
  void rewrite(const std::function<void(TensorFile&)>& change) {
    TensorFile file = load_safetensors(file_);
    change(file);
    save_safetensors(file_, file.arrays, file.metadata);
  }

  TemporaryFolder folder_;
  std::filesystem::path file_ = folder_ / "cache";
  Model model_ = open("hf/llama");
};

TEST_F(WrongCacheFile, IsRefusedAndNothingChanges) {
  const std::string keys = "layers.1.attention.keys";
  rewrite([&](TensorFile& file) { file.arrays.erase(keys); });
  EXPECT_EQ(error(), ": tensor 'layers.1.attention.keys' is missing");
  rewrite([&](TensorFile& file) { file.arrays.emplace(keys, Array(f16, {1, 2, 8, 16})); });
  EXPECT_EQ(error(), ": tensor 'layers.1.attention.keys' is f16[1,2,8,16] (this model's is f16[1,2,9,16])");
  rewrite([&](TensorFile& file) { file.arrays[keys] = Array(f16, {1, 2, 9, 16}), file.arrays.emplace("more", Array(f32, {1})); });
  EXPECT_EQ(error(), ": 5 tensors for 4 caches of this model");
  rewrite([&](TensorFile& file) { file.arrays["ids"] = Array::of<std::int32_t>({9}, std::vector<std::int32_t>(9, 256)); });
  EXPECT_EQ(error(), ": token 256 is not in the vocabulary (allowed: 0..255)");
  rewrite([&](TensorFile& file) { file.metadata["type"] = "q8"; });
  EXPECT_EQ(error(), ": is a cache of type 'q8' (this model's is f16; --cache-type chooses)");
  rewrite([&](TensorFile& file) { file.metadata["version"] = "1"; });
  EXPECT_EQ(error(), ": this version of caches is not known (known: 2)");
  EXPECT_TRUE(std::ranges::equal(model_.ids(), cached_prompt));
  Model other = open("hf/llama");
  other.append(cached_prompt);
  EXPECT_EQ(model_.append(next_ids), other.append(next_ids));
}

TEST_F(WrongCacheFile, OfAnotherModelOrShorterContextIsRefused) {
  const std::string name = file_.string();
  Model tied = open("hf/llama-tied"), small = open("hf/llama", 8);
  EXPECT_EQ(error_of([&] { tied.load_cache(file_); }), name + ": is the cache of another model, or of another --precision");
  EXPECT_EQ(error_of([&] { small.load_cache(file_); }), name + ": 9 tokens are more than the context holds (allowed: up to 8)");
  EXPECT_EQ(error_of([&] { tied.save_cache(file_); }), name + ": there is nothing to save: the cache holds no tokens");
  SessionOptions options;
  options.precision = Precision::bf16;
  Model rounded = Model::open(fixture("hf/llama"), Session(Device::cpu(), options), {.context = 32});
  EXPECT_EQ(error_of([&] { rounded.load_cache(file_); }), name + ": is the cache of another model, or of another --precision");
}

TEST_F(WrongCacheFile, ThatIsCutShortOrNoCacheIsRefused) {
  std::filesystem::resize_file(file_, std::filesystem::file_size(file_) - 1);
  EXPECT_NE(error(), "");
  std::filesystem::remove(file_);
  EXPECT_NE(error(), "");
  std::filesystem::copy_file(fixture("hf/llama/model.safetensors"), file_);
  EXPECT_EQ(error(), ": is no cache of tokens");
}

}  // namespace
}  // namespace rlx::test
