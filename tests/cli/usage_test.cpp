#include <gtest/gtest.h>

#include "cli/run_command.h"

namespace rlx::test {
namespace {

TEST(Usage, HelpNamesEveryCommand) {
  const CommandResult result = run_rlx("--help");
  EXPECT_EQ(result.status, 0);
  for (const char* name : {"embed", "eval", "grad", "dump", "explain", "verify", "inspect", "devices", "version"}) {
    EXPECT_NE(result.out.find(std::string("\n  ") + name + " "), std::string::npos) << name;
    const CommandResult help = run_rlx(std::string(name) + " --help");
    EXPECT_EQ(help.status, 0) << name;
    EXPECT_NE(help.out.find("Usage: rlx " + std::string(name)), std::string::npos) << help.out;
  }
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
  }
}

TEST(Usage, VersionAndDevicesPrintOneLine) {
  EXPECT_EQ(run_rlx("version").out, "rlx 0.1.0\n");
  const CommandResult devices = run_rlx("devices");
  EXPECT_EQ(devices.status, 0);
  EXPECT_EQ(devices.out.substr(0, 5), "cpu  ");
  EXPECT_EQ(line_count(devices.out), 1);
}

TEST(Usage, AFullDiskIsAnError) {
  const CommandResult result = run_rlx("version > /dev/full");
  EXPECT_EQ(result.status, 1);
  EXPECT_EQ(result.err, "rlx: standard output: No space left on device\n");
}

}  // namespace
}  // namespace rlx::test
