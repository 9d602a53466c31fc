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

TEST(ConvertCommand, SaysWhatWasWritten) {
  const TemporaryFolder folder;
  const auto written = [](const std::filesystem::path& file) {
    return fmt::format("{}: {} bytes\n", file.string(), std::filesystem::file_size(file));
  };
  const std::filesystem::path file = folder / "m.safetensors", gguf = folder / "m.gguf", made = folder / "made";
  const auto convert = [](const std::string& in, const std::filesystem::path& out) {
    return run_rlx(fmt::format("convert {} {}", in, out.string())).out;
  };
  const std::string of_tensors = convert(path_of("hf/llama"), file), of_gguf = convert(path_of("hf/llama"), gguf);
  std::filesystem::create_directory(made);
  write_text(made / "of others", "");
  const std::string of_folder = convert(gguf.string(), made);
  EXPECT_EQ(of_tensors, written(file));
  EXPECT_TRUE(of_gguf.ends_with("\n" + written(gguf))) << of_gguf;
  EXPECT_EQ(of_folder, written(made / "config.json") + written(made / "model.safetensors"));
}

TEST(ConvertCommand, RefusesWhatWouldSayNothingOfTheResult) {
  const TemporaryFolder folder;
  const auto error = [&](const std::string& arguments) {
    const CommandResult result = run_rlx(arguments);
    EXPECT_EQ(result.status, 1) << arguments;
    EXPECT_EQ(line_count(result.err), 1) << result.err;
    return result.err;
  };
  const std::string model = path_of("hf/llama"), gguf = (folder / "m.gguf").string();
  EXPECT_NE(error(fmt::format("convert {} {}/m.safetensors --type Q4_0", model, folder.path().string())).find("--dtype is for it"),
            std::string::npos);
  EXPECT_NE(error(fmt::format("convert {} {} --dtype f16", model, gguf)).find("--type is for it"), std::string::npos);
  EXPECT_EQ(folder.entries(), 0);
}

TEST(ConvertCommand, LeavesTheSourceAlone) {
  const TemporaryFolder folder;
  const std::string file = (folder / "m.gguf").string();
  std::filesystem::copy(fixture("gguf_models/llama.gguf"), file);
  const std::string before = read_text(file);
  for (const char* command : {"quantize {0} {0}", "convert {0} {0} --type Q4_0"}) {
    const CommandResult result = run_rlx(fmt::format(fmt::runtime(command), file));
    EXPECT_EQ(result.status, 1);
    EXPECT_EQ(result.err, fmt::format("rlx: {}: is what is read; give what is written another name\n", file));
  }
  EXPECT_EQ(read_text(file), before);
}

/// A part of the model, its weights in the folder, and the model that an adapter changes.
TEST(ConvertCommand, LeavesAllThatItReadsAlone) {
  const TemporaryFolder folder;
  const auto path = [&](const char* name) { return (folder / name).string(); };
  std::filesystem::copy(fixture("hf/llama"), folder / "model");
  std::filesystem::copy(fixture("gguf_models/llama.gguf"), folder / "base.gguf");
  for (const char* name : {"split-00001-of-00002.gguf", "split-00002-of-00002.gguf"})
    std::filesystem::copy(fixture("gguf") / name, folder / name);
  const std::string adapter = path_of("lora/llama"), model = path("model");
  const std::pair<std::string, std::string> cases[] = {
      {fmt::format("convert {} {}/model.safetensors --dtype bf16", model, model), model + "/model.safetensors"},
      {fmt::format("quantize {} {}/config.json", model, model), model + "/config.json"},
      {fmt::format("quantize {} {}", path("split-00001-of-00002.gguf"), path("split-00002-of-00002.gguf")),
       path("split-00002-of-00002.gguf")},
      {fmt::format("convert {} {} --base {}", adapter, path("base.gguf"), path("base.gguf")), path("base.gguf")},
      {fmt::format("convert {} {} --base {}", path_of("lora/llama.gguf"), model, model), model},
  };
  for (const auto& [command, refused] : cases) {
    const auto before = std::filesystem::is_directory(refused) ? "" : read_text(refused);
    const CommandResult result = run_rlx(command);
    EXPECT_EQ(result.status, 1) << command;
    EXPECT_EQ(result.err, fmt::format("rlx: {}: is what is read; give what is written another name\n", refused));
    EXPECT_TRUE(std::filesystem::is_directory(refused) || read_text(refused) == before) << command;
  }
  EXPECT_FALSE(std::filesystem::exists(folder / "model/adapter_config.json"));
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
  EXPECT_NE(error(fmt::format("{} {} --base {} --type Q4_0", adapter, file, model)).find("--base: an adapter keeps its types"),
            std::string::npos);
  EXPECT_NE(error(path_of("lora/llama.gguf") + " " + (folder / "x").string()).find("is an adapter; --base names"), std::string::npos);
  EXPECT_NE(error(fmt::format("{} {}/a.safetensors --base {}", adapter, folder.path().string(), model)).find("must end with .gguf"),
            std::string::npos);
  EXPECT_NE(error(fmt::format("{} {} --base {}", model, file, model)).find("is no adapter, which alone has a --base"), std::string::npos);
  EXPECT_NE(error(fmt::format("{} {} --base {}", adapter, file, path_of("hf/gpt2"))).find("the adapter does not fit"), std::string::npos);
  EXPECT_EQ(folder.entries(), 0);
}

}  // namespace
}  // namespace rlx::test
