#include <regex>

#include <gtest/gtest.h>

#include "cli/run_command.h"
#include "rlx/session.h"

namespace rlx::test {
namespace {

TEST(Usage, HelpNamesEveryCommand) {
  const CommandResult result = run_rlx("--help");
  EXPECT_EQ(result.status, 0);
  for (const char* name : {"embed", "calibrate", "eval", "grad", "dump", "explain", "verify", "perplexity", "inspect", "quantize",
                           "convert", "devices", "version"}) {
    EXPECT_NE(result.out.find(std::string("\n  ") + name + " "), std::string::npos) << name;
    const CommandResult help = run_rlx(std::string(name) + " --help");
    EXPECT_EQ(help.status, 0) << name;
    EXPECT_NE(help.out.find("Usage: rlx " + std::string(name)), std::string::npos) << help.out;
  }
}

TEST(Usage, HelpNamesTheVariables) {
  const std::string help = run_rlx("--help").out;
  for (const char* name : {"RLX_CACHE", "XDG_CACHE_HOME", "RLX_CPU"}) EXPECT_NE(help.find(name), std::string::npos) << name;
  EXPECT_EQ(run_rlx("devices --help").out.find("RLX_CPU"), std::string::npos);
}

TEST(Usage, WrongUsageEndsWithTwoAndAHint) {
  for (const char* arguments :
       {"", "fly", "--wrong", "embed", "embed --model", "embed --model x --batch-size 0", "embed --model x --threads -1",
        "embed --model x --batch-size many", "embed --model x a b", "verify", "version extra"}) {
    const CommandResult result = run_rlx(arguments);
    EXPECT_EQ(result.status, 2) << arguments;
    EXPECT_EQ(result.out, "") << arguments;
    EXPECT_EQ(result.err.substr(0, 5), "rlx: ") << arguments;
    EXPECT_NE(result.err.find("--help'.\n"), std::string::npos) << result.err;
    EXPECT_EQ(line_count(result.err), 1) << result.err;
  }
}

/// A shell makes such streams; run_rlx's own redirections come before them.
TEST(Usage, AnErrorStreamThatCannotBeWrittenChangesNoStatus) {
  const TemporaryFolder folder;
  for (const std::string stream : {" 2>&-", " 2>/dev/full"}) {
    EXPECT_EQ(run_rlx("fly" + stream).status, 2) << stream;
    EXPECT_EQ(run_rlx("inspect nowhere.gguf" + stream).status, 1) << stream;
    // With a warning: a cache cannot be in a file.
    const std::string out = (folder / "out").string();
    write_text(folder / "file", "");
    setenv("RLX_CACHE", (folder / "file").c_str(), 1);
    write_text(folder / "iota.rlx", "graph g {\n  %a = iota {shape=[3], dtype=f32}\n  %b = exp(%a)\n  output y = %b\n}\n");
    const CommandResult warned = run_rlx("eval " + (folder / "iota.rlx").string() + " --out " + out + stream);
    unsetenv("RLX_CACHE");
    EXPECT_EQ(warned.status, 0) << stream;
    EXPECT_NE(warned.out.find("y.npy"), std::string::npos);
  }
}

TEST(Usage, ADeviceThatIsMissingSaysWhyAndNothingOfOthers) {
  for (const std::string& line : Device::missing()) {
    const std::string kind = line.substr(0, line.find(':')), error = error_of([&] { Device::named(kind); });
    EXPECT_TRUE(error.ends_with("); " + line)) << error;
    EXPECT_EQ(
        std::ranges::count_if(Device::missing(), [&](const std::string& other) { return error.find("; " + other) != std::string::npos; }),
        1)
        << error;
  }
  EXPECT_TRUE(error_of([] { Device::named("rubbish"); }).ends_with("auto)"));
}

TEST(Usage, ClosedStreamsAreNotTakenForFiles) {
  EXPECT_EQ(run_rlx("version >&-").status, 1);
  const CommandResult unread = run_rlx("inspect - <&-");
  EXPECT_EQ(unread.status, 1);
  EXPECT_NE(unread.err.find("standard input"), std::string::npos) << unread.err;
}

/// Each pair: a command line, and what its message must contain.
TEST(Usage, TheMessageNamesTheMistake) {
  const std::pair<const char*, const char*> cases[] = {
      {"fly", "unknown command 'fly'"},
      {"evl", "unknown command 'evl' (near: 'eval')"},
      {"caht", "unknown command 'caht' (near: 'chat')"},
      {"run m.gguf --promt x", "unknown option '--promt' (near: '--prompt')"},
      {"--verion", "unknown option '--verion' (near: '--version')"},
      {"embed --modl x", "unknown option '--modl' (near: '--model'); try 'rlx embed --help'"},
      {"eval --nowhere=3", "unknown option '--nowhere'"},
      {"embed --model x a b", "'b'"},
      {"embed --model ''", "--model: must not be empty"},
      {"embed --model x ''", "file: must not be empty"},
      {"inspect ''", "file: must not be empty"},
      {"eval g.rlx --out o --reference --no-claims", "--reference excludes --no-claims"},
      {"eval g.rlx --out o --reference --no-fusion", "--reference excludes --no-fusion"},
      {"eval g.rlx --out o --reference --threads 2", "--reference excludes --threads"},
      {"dump g.rlx --stage hir --no-fusion", "--stage hir excludes --no-claims, --no-fusion and --precision"},
      {"dump g.rlx --stage hir --precision bf16", "--stage hir excludes --no-claims, --no-fusion and --precision"},
      {"eval g.rlx --out o --precision f8", "--precision: f8 not in {f32,bf16,f16,int8}"},
      {"bench m.gguf -p 0 -n 0", "--prompt and --tokens: one of them must be above 0"},
      {"run m.gguf x -p y", "--prompt excludes text"},
      {"run m.gguf -p x --seed -1", "--seed: -1 (allowed: whole numbers, 0..18446744073709551615)"},
      {"run m.gguf -p x --seed 18446744073709551616", "--seed: 18446744073709551616 (allowed: whole numbers, 0..18446744073709551615)"},
      {"chat m.gguf --top-k 9223372036854775808", "--top-k: 9223372036854775808 (allowed: whole numbers, "},
      {"run m.gguf -p x --guesses 3", "--guesses requires --lookup or --draft"},
      {"run m.gguf -p x --mirostat 1.5", "--mirostat: 1.5 (allowed: whole numbers, "},
      {"tokenize --model m.gguf --jsonl --no-special", "--no-special excludes --jsonl"},
      {"explain g.rlx --no-time --repeats 7", "--repeats excludes --no-time"},
      {"explain g.rlx --no-time --tune", "--no-time excludes --tune"},
  };
  for (const auto& [arguments, part] : cases) {
    const CommandResult result = run_rlx(arguments);
    EXPECT_EQ(result.status, 2) << arguments;
    EXPECT_NE(result.err.find(part), std::string::npos) << result.err;
  }
}

TEST(Usage, AMissingFileIsToldWithWhatIsNear) {
  const TemporaryFolder folder;
  write_text(folder / "model.gguf", "");
  write_text(folder / "texts.txt", "");
  const std::string name = (folder / "modle.gguf").string();
  for (const char* command : {"run {} -p x", "inspect {}", "tokenize --model {} x", "embed --model {} /dev/null"}) {
    const CommandResult result = run_rlx(fmt::format(fmt::runtime(command), name));
    EXPECT_EQ(result.status, 1) << command;
    EXPECT_NE(result.err.find("modle.gguf: "), std::string::npos) << result.err;
    EXPECT_NE(result.err.find("No such file or directory (near: 'model.gguf')"), std::string::npos) << result.err;
  }
  EXPECT_NE(run_rlx("perplexity m.gguf -f " + (folder / "text.txt").string()).err.find("(near: 'texts.txt')"), std::string::npos);
}

TEST(Usage, HelpSaysNumbersInWords) {
  for (const char* name : {"embed", "eval", "explain", "verify"}) {
    const std::string help = run_rlx(std::string(name) + " --help").out;
    EXPECT_NE(help.find("--threads N"), std::string::npos) << help;
    EXPECT_EQ(help.find("INT"), std::string::npos) << help;
  }
}

TEST(Usage, VersionAndEachDevicePrintOneLine) {
  const std::string version = run_rlx("version").out;
  EXPECT_TRUE(std::regex_match(version, std::regex(R"(rlx \d+\.\d+\.\d+ \((commit [0-9a-f]{12}(-dirty)?|unknown commit)\)\n)"))) << version;
  EXPECT_EQ(run_rlx("--version").out, version);
  const CommandResult devices = run_rlx("devices");
  EXPECT_EQ(devices.status, 0);
  EXPECT_EQ(devices.out.substr(0, 5), "cpu  ");
  EXPECT_EQ(static_cast<std::size_t>(line_count(devices.out)), Device::all().size() + Device::missing().size());
}

TEST(Usage, AFullDiskIsAnError) {
  // Less than a buffer of output, which is written at the end, and more.
  for (const std::string arguments : {"version", "--version", "--help", "ops", "ops --markdown"}) {
    const CommandResult result = run_rlx(arguments + " > /dev/full");
    EXPECT_EQ(result.status, 1) << arguments;
    EXPECT_EQ(result.err, "rlx: standard output: No space left on device\n") << arguments;
  }
}

TEST(Usage, DevicesShowsTheLevelInUse) {
  const TemporaryFolder folder;
  const auto devices = [&](const std::string& level) {
    const std::string out = (folder / "out").string();
    const int status = std::system(("RLX_CPU=" + level + " " RLX_COMMAND " devices > " + out + " 2> /dev/null").c_str());
    return std::pair(WEXITSTATUS(status), read_text(out));
  };
  EXPECT_NE(devices("portable").second.find(", portable"), std::string::npos) << devices("portable").second;
  EXPECT_EQ(devices("bogus").first, 1);
}

}  // namespace
}  // namespace rlx::test
