#include "line_history.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <optional>
#include <system_error>

#include "base/file_writer.h"
#include "models/tokenizer/decoder.h"
#include "rlx/error.h"

namespace rlx::command {
namespace {

constexpr std::uintmax_t most_bytes = std::uintmax_t{16} << 20;  // of a file that somebody else has put there

/// A folder that a variable names; relative names are not valid there (XDG Base Directory Specification).
std::optional<std::filesystem::path> folder_of(const char* variable) {
  const char* value = std::getenv(variable);
  if (value == nullptr || value[0] != '/') return std::nullopt;
  return value;
}

}  // namespace

std::filesystem::path history_file() {
  if (const auto state = folder_of("XDG_STATE_HOME")) return *state / "rlx/history";
  if (const auto home = folder_of("HOME")) return *home / ".local/state/rlx/history";
  return {};
}

std::vector<std::string> read_history(const std::filesystem::path& file, std::size_t most) {
  std::error_code error;
  std::vector<std::string> lines;
  if (!std::filesystem::is_regular_file(file, error) || std::filesystem::file_size(file, error) > most_bytes) return lines;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);)
    if (!line.empty()) lines.push_back(replace_invalid_utf8(line));
  if (lines.size() > most) lines.erase(lines.begin(), lines.end() - static_cast<std::ptrdiff_t>(most));
  return lines;
}

bool write_history(const std::filesystem::path& file, std::string_view lines) {
  std::error_code error;
  std::filesystem::create_directories(file.parent_path(), error);
  const int made = ::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);  // a file that exists keeps its permissions
  if (made >= 0) ::close(made);
  try {
    write_file(file, lines);
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace rlx::command
