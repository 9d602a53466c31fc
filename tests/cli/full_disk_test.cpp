// Files written to a disk that is full: one line says so, and the file that was there stays.
#include "cli/run_command.h"
#include "fixture.h"
#include "formats/file_size_limit.h"
#include "models/tiny_language_model.h"

namespace rlx {
namespace {

using test::fixture;
using test::run_rlx;
using test::TemporaryFolder;

constexpr rlim_t small_disk = 1 << 14;  // fixtures are larger, what is printed is not

test::CommandResult run_with_limit(rlim_t limit, const std::string& arguments) {
  const test::FileSizeLimit disk(limit);
  return run_rlx(arguments);
}

std::string full(const std::filesystem::path& file) { return fmt::format("rlx: {}: cannot write: File too large\n", file.string()); }

/// `command` with the folder of the fixtures for {0}, and what it writes behind it.
std::string command_line(const std::string& command, const std::filesystem::path& out) {
  return fmt::format("{} {}", fmt::format(fmt::runtime(command), fixture("").string()), out.string());
}

class FullDisk : public testing::TestWithParam<std::pair<std::string, std::string>> {};

TEST_P(FullDisk, LeavesTheOldFileAndSaysWhy) {
  const auto& [command, target] = GetParam();
  const TemporaryFolder folder;
  test::write_text(folder / target, "old");
  const auto result = run_with_limit(small_disk, command_line(command, folder / target));
  EXPECT_EQ(result.status, 1);
  EXPECT_EQ(result.err, full(folder / target));
  EXPECT_EQ(test::read_text(folder / target), "old");
  EXPECT_EQ(folder.entries(), 1);
}

INSTANTIATE_TEST_SUITE_P(Commands, FullDisk,
                         testing::Values(std::pair("convert {0}/hf/llama", "m.gguf"), std::pair("convert {0}/hf/llama", "m.safetensors"),
                                         std::pair("convert {0}/lora/llama --base {0}/hf/llama", "a.gguf"),
                                         std::pair("quantize {0}/gguf_models/llama.gguf --type Q8_0", "q.gguf")));

class FullDiskOfFolder : public testing::TestWithParam<std::pair<std::string, std::vector<std::string>>> {};

TEST_P(FullDiskOfFolder, LeavesAllOldFilesOrNoFolder) {
  const auto& [command, files] = GetParam();
  const TemporaryFolder folder;
  const std::filesystem::path made = folder / "made";
  const auto convert = [&] {
    const auto result = run_with_limit(small_disk, command_line(command, made));
    EXPECT_EQ(result.status, 1);
    EXPECT_EQ(result.err, full(made / files.front()));
  };
  convert();
  EXPECT_EQ(folder.entries(), 0);
  std::filesystem::create_directory(made);
  for (const std::string& file : files) test::write_text(made / file, "old");
  convert();
  for (const std::string& file : files) EXPECT_EQ(test::read_text(made / file), "old") << file;
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(made), {}), static_cast<std::ptrdiff_t>(files.size()));
}

INSTANTIATE_TEST_SUITE_P(Commands, FullDiskOfFolder,
                         testing::Values(std::pair("convert {0}/gguf_models/llama.gguf",
                                                   std::vector<std::string>{"model.safetensors", "config.json"}),
                                         std::pair("convert {0}/lora/llama.gguf --base {0}/hf/llama",
                                                   std::vector<std::string>{"adapter_model.safetensors", "adapter_config.json"})));

TEST(FullDiskOfRun, TheAnswerIsPrintedAndTheOldCacheStays) {
  const TemporaryFolder folder;
  const test::TinyLanguageModel model(test::tokenizer_of_words());
  const auto command = [&](int tokens) {
    return fmt::format("run {} -p '{}' -n {} --cache {}", model.path().string(), test::words_of(test::recorded_ids("prompt_ids")), tokens,
                       (folder / "cache").string());
  };
  EXPECT_EQ(run_rlx(command(5)).status, 0);
  const std::string before = test::read_text(folder / "cache");
  EXPECT_GT(before.size(), 1U << 10);
  const auto failed = run_with_limit(1 << 10, command(9));
  EXPECT_EQ(failed.status, 1);
  EXPECT_EQ(failed.err, full(folder / "cache"));
  EXPECT_EQ(test::read_text(folder / "cache"), before);
  EXPECT_EQ(folder.entries(), 1);
  const auto whole = run_rlx(command(9));
  EXPECT_EQ(whole.status, 0);
  EXPECT_EQ(failed.out, whole.out);
}

TEST(FullDiskOfChat, TheConversationGoesOnAndTheOldFilesStay) {
  const TemporaryFolder folder;
  const test::TinyLanguageModel model(test::tokenizer_of_words());
  test::write_text(model.path() / "chat_template.jinja", "{% for m in messages %}w2 {{ m.content }} {% endfor %}");
  const std::filesystem::path cache = folder / "cache", text = folder / "talk", json = folder / "talk.json";
  const auto chat = [&](rlim_t limit) {
    std::string message;
    for (int i = 0; i < 1000; ++i) message += "w255 ";
    test::write_text(model.path() / "lines", fmt::format("{}\n/save {}\n/save {}\nw7\nw8\n", message, text.string(), json.string()));
    return run_with_limit(limit, fmt::format("chat {} -n 3 --context 4000 --cache {} < {}", model.path().string(), cache.string(),
                                             (model.path() / "lines").string()));
  };
  const auto whole = chat(RLIM_INFINITY);
  EXPECT_EQ(whole.status, 0) << whole.err;
  std::vector<std::string> before;
  for (const auto& file : {cache, text, json}) before.push_back(test::read_text(file));
  const auto failed = chat(1 << 12);
  EXPECT_EQ(failed.status, 1);
  EXPECT_NE(failed.out.rfind("tok/s"), failed.out.find("tok/s")) << failed.out;  // both messages were answered
  EXPECT_EQ(failed.err.find(whole.err), 0U);  // of the context, which is longer than the model was trained for
  std::string said = failed.err.substr(whole.err.size());
  for (std::size_t i = 0; const auto& file : {cache, text, json}) {
    EXPECT_NE(said.find(full(file)), std::string::npos) << failed.err;
    said.erase(said.find(full(file)), full(file).size());  // said once
    EXPECT_EQ(test::read_text(file), before[i++]) << file;
  }
  EXPECT_EQ(said, "");  // nothing else
  EXPECT_EQ(folder.entries(), 3);
}

}  // namespace
}  // namespace rlx
