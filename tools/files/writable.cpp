#include "files/writable.h"

#include <cerrno>
#include <cstdio>
#include <system_error>

#include "base/files/file_writer.h"

namespace rlx::command {

void check_writable(const std::filesystem::path& file, const std::filesystem::path& read) {
  std::error_code error;
  if (std::filesystem::equivalent(file, read, error)) fail("{}: is what is read; give what is written another name", file.string());
  const FileWriter tried(file);  // permissions alone do not tell: nobody makes files in /proc
}

void flush_output() {
  if (std::fflush(stdout) != 0) throw std::system_error(errno, std::generic_category(), "standard output");
}

}  // namespace rlx::command
