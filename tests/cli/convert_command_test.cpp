// What `rlx convert` takes for an adapter, and how it says what is missing.
#include <gtest/gtest.h>

#include "cli/run_command.h"
#include "fixture.h"

namespace rlx::test {
namespace {

std::string path_of(std::string_view name) { return fixture(name).string(); }

TEST(ConvertCommand, WritesAdaptersInBothForms) {
  const TemporaryFolder folder;
  const std::string file = (folder / "a.gguf").string(), back = (folder / "back").string();
  for (const char* base : {"hf/llama", "gguf_models/llama.gguf"}) {
    const CommandResult there = run_rlx(fmt::format("convert {} {} --base {}", path_of("lora/llama"), file, path_of(base)));
    EXPECT_EQ(there.status, 0) << there.err;
    const CommandResult again = run_rlx(fmt::format("convert {} {} --base {}", file, back, path_of(base)));
    EXPECT_EQ(again.status, 0) << again.err;
    EXPECT_NE(run_rlx("inspect " + back).out.find("14 matrices, ranks 2 to 4"), std::string::npos);
  }
}

TEST(ConvertCommand, SaysWhatAnAdapterNeeds) {
  const TemporaryFolder folder;
  const auto error = [&](const std::string& arguments) {
    const CommandResult result = run_rlx("convert " + arguments);
    EXPECT_EQ(result.status, 1) << arguments;
    EXPECT_EQ(line_count(result.err), 1) << result.err;
    return result.err;
  };
  const std::string adapter = path_of("lora/llama"), model = path_of("hf/llama"), file = (folder / "a.gguf").string();
  EXPECT_NE(error(adapter + " " + file).find("is an adapter; --base names the model that it changes"), std::string::npos);
  EXPECT_NE(error(path_of("lora/llama.gguf") + " " + (folder / "x").string()).find("is an adapter; --base names"), std::string::npos);
  EXPECT_NE(error(fmt::format("{} {}/a.safetensors --base {}", adapter, folder.path().string(), model)).find("must end with .gguf"),
            std::string::npos);
  EXPECT_NE(error(fmt::format("{} {} --base {}", model, file, model)).find("is no adapter, which alone has a --base"), std::string::npos);
  EXPECT_NE(error(fmt::format("{} {} --base {}", adapter, file, path_of("hf/gpt2"))).find("the adapter is of another model"),
            std::string::npos);
  EXPECT_EQ(folder.entries(), 0);
}

}  // namespace
}  // namespace rlx::test
