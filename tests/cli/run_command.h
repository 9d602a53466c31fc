#pragma once
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include <fmt/format.h>

#include "formats/temporary_folder.h"

namespace rlx::test {

/// What a command left behind. `status` is the exit status, or 128 + the number of the signal that ended it.
struct CommandResult {
  int status = -1;
  std::string out, err;
};

/// For a shell.
inline std::string quoted(const std::filesystem::path& path) { return "'" + path.string() + "'"; }

/// Runs `rlx <arguments>` in a shell, which may hold redirections and pipes.
inline CommandResult run_rlx(const std::string& arguments) {
  const TemporaryFolder folder;
  const std::string line = fmt::format("( {} {} ) >{} 2>{}", RLX_COMMAND, arguments, (folder / "out").string(), (folder / "err").string());
  const int status = std::system(line.c_str());
  return {WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status), read_text(folder / "out"), read_text(folder / "err")};
}

/// How many lines end in `text`.
inline std::ptrdiff_t line_count(const std::string& text) { return std::count(text.begin(), text.end(), '\n'); }

}  // namespace rlx::test
