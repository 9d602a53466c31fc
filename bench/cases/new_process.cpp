#include "cases/new_process.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <string>

#include "rlx/error.h"

namespace rlx::bench {
namespace {

[[noreturn]] void run_and_exit(const std::function<nlohmann::json()>& work, int out) {
  nlohmann::json result;
  try {
    result = work();
  } catch (const std::exception& error) {
    result = {{"error", error.what()}};
  }
  const std::string text = result.dump();
  _exit(write(out, text.data(), text.size()) == static_cast<ssize_t>(text.size()) ? 0 : 1);
}

}  // namespace

nlohmann::json in_new_process(const std::function<nlohmann::json()>& work, unsigned most_seconds) {
  int ends[2];
  if (pipe(ends) != 0) fail("a pipe cannot be made: {}", std::strerror(errno));
  const pid_t id = fork();
  if (id < 0) fail("a process cannot be started: {}", std::strerror(errno));
  if (id == 0) {
    alarm(most_seconds);
    run_and_exit(work, ends[1]);
  }
  close(ends[1]);
  std::string text(4096, ' ');
  const ssize_t length = read(ends[0], text.data(), text.size());
  close(ends[0]);
  int status = 0;
  waitpid(id, &status, 0);
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) fail("longer than {} s", most_seconds);
  if (length <= 0) fail("the process ended without a word");
  nlohmann::json result = nlohmann::json::parse(text.substr(0, static_cast<std::size_t>(length)));
  if (result.contains("error")) fail("{}", result["error"].get<std::string>());
  return result;
}

}  // namespace rlx::bench
