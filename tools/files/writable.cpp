#include "files/writable.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <system_error>

#include "rlx/error.h"

namespace rlx::command {

void check_writable(const std::filesystem::path& file, const std::filesystem::path& read) {
  std::error_code error;
  if (std::filesystem::equivalent(file, read, error)) fail("{}: is what is read; give what is written another name", file.string());
  if (std::filesystem::is_directory(file, error)) fail("{}: is a directory, a file is needed", file.string());
  const std::filesystem::path folder = file.has_parent_path() ? file.parent_path() : ".";
  if (access(folder.c_str(), W_OK) != 0)
    fail("{}: nothing can be written there: {}", file.string(), std::generic_category().message(errno));
}

void flush_output() {
  if (std::fflush(stdout) != 0) throw std::system_error(errno, std::generic_category(), "standard output");
}

}  // namespace rlx::command
