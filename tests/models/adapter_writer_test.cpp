// Adapters of the folder lora (scripts/lora_adapters.py) in their other form, by the logits that were recorded with them.
#include "models/conversion/adapter_writer.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "fixture.h"
#include "formats/gguf/gguf.h"
#include "formats/temporary_folder.h"
#include "models/recorded_adapter.h"
#include "models/weights/adapter_file.h"

namespace rlx {
namespace {

using test::error_of;
using test::expect_recorded;
using test::fixture;
using test::open_adapted;
using test::TemporaryFolder;

struct Converted {
  const char *name, *folder;   // of the adapter and of its model
  const char* file = nullptr;  // the same model in a GGUF file
};

class ConvertedAdapter : public testing::TestWithParam<Converted> {};

TEST_P(ConvertedAdapter, GivesTheRecordedLogitsThereAndBack) {
  const auto& [name, folder, file] = GetParam();
  const TemporaryFolder made;
  write_gguf_adapter(fixture("lora") / name, fixture(folder), made / "a.gguf");
  expect_recorded(open_adapted(fixture(folder), made / "a.gguf"), name);
  write_adapter_folder(made / "a.gguf", fixture(folder), made / "back");
  expect_recorded(open_adapted(fixture(folder), made / "back"), name);
  if (file == nullptr) return;
  expect_recorded(open_adapted(fixture(file), made / "a.gguf"), name);
  write_gguf_adapter(fixture("lora") / name, fixture(file), made / "b.gguf");
  EXPECT_EQ(test::read_text(made / "b.gguf").size(), test::read_text(made / "a.gguf").size());
  expect_recorded(open_adapted(fixture(file), made / "b.gguf"), name);
  write_adapter_folder(made / "b.gguf", fixture(file), made / "again");
  expect_recorded(open_adapted(fixture(folder), made / "again"), name);
}

INSTANTIATE_TEST_SUITE_P(All, ConvertedAdapter,
                         testing::Values(Converted{"llama", "hf/llama", "gguf_models/llama.gguf"},
                                         Converted{"llama-head", "hf/llama", "gguf_models/llama.gguf"},
                                         Converted{"llama-tied", "hf/llama-tied"}, Converted{"gpt2", "hf/gpt2", "gguf_models/gpt2.gguf"},
                                         Converted{"phi3", "hf/phi3", "gguf_models/phi3.gguf"},
                                         Converted{"gemma3", "hf/gemma3", "gguf_models/gemma3.gguf"},
                                         Converted{"falcon-new", "hf_more/falcon-new", "gguf_models/falcon-new.gguf"},
                                         Converted{"qwen3_next", "hf/qwen3_next", "gguf_models/qwen3_next.gguf"},
                                         Converted{"mamba", "hf/mamba", "gguf_models/mamba.gguf"},
                                         Converted{"mixtral", "hf/mixtral", "gguf_models/mixtral.gguf"}),
                         [](const auto& each) {
                           std::string name = each.param.name;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

// The others in the folder were written by other software.
TEST(ConvertedAdapters, HaveTheTensorsThatOthersWrite) {
  for (const auto& [name, folder] : {std::pair{"llama", "hf/llama"}, {"llama-head", "hf/llama"}, {"mixtral", "hf/mixtral"}}) {
    const TemporaryFolder made;
    write_gguf_adapter(fixture("lora") / name, fixture(folder), made / "a.gguf");
    const GgufFile ours = GgufFile::open(made / "a.gguf"), theirs = GgufFile::open(fixture("lora") / (std::string(name) + ".gguf"));
    ASSERT_EQ(ours.tensors().size(), theirs.tensors().size()) << name;
    for (const TensorView& wanted : theirs.tensors()) EXPECT_EQ(ours.at(wanted.name).shape, wanted.shape) << wanted.name;
    for (const char* key : {"general.architecture", "general.type", "adapter.type"})
      EXPECT_EQ(ours.value(key).string(), theirs.value(key).string()) << name;
  }
}

TEST(ConvertedAdapters, OfWhatHasNoOtherFormAreRefused) {
  const TemporaryFolder made;
  const auto error = [&](const char* adapter, const char* base) {
    return error_of([&] { write_gguf_adapter(fixture("lora") / adapter, fixture(base), made / "a.gguf"); });
  };
  EXPECT_NE(error("deepseek_v3", "hf_more/deepseek_v3").find("kv_b_proj.weight' transposed, head by head"), std::string::npos);
  EXPECT_NE(error("gpt2", "hf/llama").find("the adapter does not fit"), std::string::npos);
  EXPECT_NE(error("llama.gguf", "hf/gpt2").find("general.architecture is 'llama', the model's is 'gpt2'"), std::string::npos);
  EXPECT_NE(error("llama", "hf/bert").find("bert"), std::string::npos);
  EXPECT_EQ(made.entries(), 0);
}

}  // namespace
}  // namespace rlx
