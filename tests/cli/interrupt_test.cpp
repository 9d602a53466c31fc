// A signal ends the command wherever it is, and what it was writing does not stay behind.
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include <gtest/gtest.h>

#include "cli/run_command.h"
#include "cli/sparse_model.h"

namespace rlx::test {
namespace {

/// A graph whose two outputs take 128 MiB each: the second is still to be written when the file of the first appears.
constexpr std::string_view big_graph = R"(graph big {
  %a = iota {shape=[33554432], dtype=f32}
  %b = neg(%a)
  output a = %a
  output b = %b
}
)";

/// Starts `rlx eval`, sends `signal` as soon as the output folder holds a file, and gives the status of wait.
int end_while_writing(const std::filesystem::path& graph, const std::filesystem::path& output, int signal) {
  const std::string command = RLX_COMMAND, in = graph.string(), out = output.string();
  std::string words[] = {command, "eval", in, "--out", out};
  char* arguments[] = {words[0].data(), words[1].data(), words[2].data(), words[3].data(), words[4].data(), nullptr};
  pid_t child = 0;
  if (posix_spawn(&child, command.c_str(), nullptr, nullptr, arguments, environ) != 0) fail("cannot start {}", command);
  for (int i = 0; i < 60000 && (!std::filesystem::exists(output) || std::filesystem::is_empty(output)); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  kill(child, signal);
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

TEST(Interrupt, LeavesNoFileOfEval) {
  const TemporaryFolder folder;
  write_text(folder / "big.rlx", big_graph);
  std::filesystem::create_directory(folder / "out");
  for (const int signal : {SIGINT, SIGTERM}) {
    const int status = end_while_writing(folder / "big.rlx", folder / "out", signal);
    EXPECT_TRUE(WIFSIGNALED(status)) << WEXITSTATUS(status);
    EXPECT_EQ(WTERMSIG(status), signal);
    EXPECT_TRUE(std::filesystem::is_empty(folder / "out"));
  }
}

TEST(Interrupt, LeavesNoFolderThatItMade) {
  const TemporaryFolder folder;
  write_text(folder / "big.rlx", big_graph);
  EXPECT_EQ(WTERMSIG(end_while_writing(folder / "big.rlx", folder / "in/out/", SIGINT)), SIGINT);
  EXPECT_FALSE(std::filesystem::exists(folder / "in"));
}

TEST(Interrupt, WhatAKilledCommandLeavesIsGoneAfterTheNext) {
  const TemporaryFolder folder;
  write_text(folder / "big.rlx", big_graph);
  EXPECT_EQ(WTERMSIG(end_while_writing(folder / "big.rlx", folder / "out", SIGKILL)), SIGKILL);
  EXPECT_FALSE(std::filesystem::is_empty(folder / "out"));
  EXPECT_EQ(run_rlx("eval " + (folder / "big.rlx").string() + " --out " + (folder / "out").string()).status, 0);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder / "out"), {}), 2);
}

TEST(Interrupt, SignalsThatAreIgnoredStayIgnored) {
  const TemporaryFolder folder;
  write_text(folder / "big.rlx", big_graph);
  const std::string out = (folder / "out").string();
  // A shell that ignores a signal hands that on to its commands.
  const std::string line = "trap '' INT; " RLX_COMMAND " eval " + (folder / "big.rlx").string() + " --out " + out +
                           " > /dev/null & sleep 0.2; kill -INT $!; wait $!";
  EXPECT_EQ(WEXITSTATUS(std::system(line.c_str())), 0);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(out), {}), 2);
}

TEST(Interrupt, AFileThatMayNotGrowIsAnError) {
  const TemporaryFolder folder;
  write_sparse_model(folder / "in.gguf");
  const std::string line =
      fmt::format("ulimit -f 1; {0} quantize --type Q8_0 {1}/in.gguf {1}/out.gguf 2> {1}/err", RLX_COMMAND, folder.path().string());
  EXPECT_EQ(WEXITSTATUS(std::system(line.c_str())), 1);
  EXPECT_EQ(read_text(folder / "err"), fmt::format("rlx: {}: cannot write: File too large\n", (folder / "out.gguf").string()));
  EXPECT_EQ(folder.entries(), 2);
}

TEST(Interrupt, AFileThatIsCutShortWhileItIsReadGivesOneLine) {
  const TemporaryFolder folder;
  write_sparse_model(folder / "in.gguf");
  std::filesystem::create_directory(folder / "out");
  const std::string in = (folder / "in.gguf").string(), out = (folder / "out").string();
  // The file is cut as soon as the first part of the result is there.
  const std::string line = fmt::format(
      "{} quantize --threads 1 --type Q8_0 {} {}/model.gguf 2>{}/err & while [ -z \"$(ls {})\" ]; do :; done; truncate -s 4096 {}; wait $!",
      RLX_COMMAND, in, out, folder.path().string(), out, in);
  EXPECT_EQ(WEXITSTATUS(std::system(line.c_str())), 1);
  EXPECT_EQ(read_text(folder / "err"), "rlx: a file was cut short, or its disk failed, while it was being read\n");
  EXPECT_TRUE(std::filesystem::is_empty(folder / "out"));
}

}  // namespace
}  // namespace rlx::test
