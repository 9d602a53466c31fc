// The bar of long work, as a terminal gets it.
#include <pty.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <regex>
#include <thread>

#include <gtest/gtest.h>

#include "cli/run_command.h"
#include "cli/sparse_model.h"

namespace rlx::test {
namespace {

/// All that `rlx quantize` sends to its terminal when it takes more than a second: it is stopped that long once it has begun to write.
std::string seen_of_quantize(const std::filesystem::path& in, const std::filesystem::path& folder) {
  const std::string command = RLX_COMMAND, from = in.string(), to = (folder / "out.gguf").string();
  winsize size{};
  size.ws_row = 24, size.ws_col = 200;
  int terminal = -1;
  const pid_t child = forkpty(&terminal, nullptr, nullptr, &size);
  if (child == 0) {
    execl(command.c_str(), "rlx", "quantize", from.c_str(), to.c_str(), "--type", "Q8_0", "--threads", "1", nullptr);
    _exit(127);
  }
  for (int i = 0; i < 60000 && std::filesystem::is_empty(folder); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  kill(child, SIGSTOP);
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));
  kill(child, SIGCONT);
  std::string seen;
  char bytes[4096];
  for (ssize_t count = 0; (count = read(terminal, bytes, sizeof bytes)) > 0;) seen.append(bytes, static_cast<std::size_t>(count));
  close(terminal);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << seen;
  return seen;
}

TEST(ProgressBar, IsDrawnOverItselfAndGoneBeforeTheResult) {
  const TemporaryFolder folder;
  write_sparse_model(folder / "in.gguf");
  std::filesystem::create_directory(folder / "out");
  std::string rest = seen_of_quantize(folder / "in.gguf", folder / "out");
  const std::regex bar("\rquantizing \\[(#*)(\\.*)\\] ([0-9]+)/33554432\x1b\\[K");
  std::smatch parts;
  std::size_t bars = 0;
  for (; std::regex_search(rest, parts, bar, std::regex_constants::match_continuous); ++bars) {
    EXPECT_EQ(parts[1].length() + parts[2].length(), 30) << parts[0];
    EXPECT_EQ(parts[1].length(), 30 * std::stol(parts[3]) / 33554432) << parts[0];
    rest = parts.suffix();
  }
  EXPECT_GT(bars, 0U);
  EXPECT_TRUE(rest.starts_with("\r\x1b[K")) << rest;
  EXPECT_EQ(rest.find('\x1b', 4), std::string::npos) << rest;
  EXPECT_NE(rest.find("Q8_0"), std::string::npos) << rest;
}

}  // namespace
}  // namespace rlx::test
