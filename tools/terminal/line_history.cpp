#include "terminal/line_history.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <optional>
#include <string_view>
#include <system_error>

#include "base/files/file_writer.h"
#include "rlx/error.h"
#include "text/tokenizer/token_decoder.h"

namespace rlx::command {
namespace {

constexpr std::uintmax_t most_bytes = std::uintmax_t{16} << 20;  // of a file that somebody else has put there

/// A folder that a variable names; relative names are not valid there (XDG Base Directory Specification).
std::optional<std::filesystem::path> folder_of(const char* variable) {
  const char* value = std::getenv(variable);
  if (value == nullptr || value[0] != '/') return std::nullopt;
  return value;
}

/// The lines of an entry, each but the last with a \ at its end.
std::string joined_lines(std::string_view entry) {
  std::string lines;
  for (const char c : entry) lines += c == '\n' ? "\\\n" : std::string(1, c);
  return lines;
}

}  // namespace

std::filesystem::path history_file() {
  if (const auto state = folder_of("XDG_STATE_HOME")) return *state / "rlx/history";
  if (const auto home = folder_of("HOME")) return *home / ".local/state/rlx/history";
  return {};
}

std::vector<std::string> read_history(const std::filesystem::path& file, std::size_t most) {
  std::error_code error;
  std::vector<std::string> entries;
  if (!std::filesystem::is_regular_file(file, error) || std::filesystem::file_size(file, error) > most_bytes) return entries;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    for (std::string next; line.ends_with('\\') && std::getline(in, next);) line.back() = '\n', line += next;
    if (!line.empty()) entries.push_back(replace_invalid_utf8(line));
  }
  if (entries.size() > most) entries.erase(entries.begin(), entries.end() - static_cast<std::ptrdiff_t>(most));
  return entries;
}

bool write_history(const std::filesystem::path& file, std::span<const std::string> entries) {
  std::string lines;
  for (const std::string& entry : entries) lines += joined_lines(entry) + "\n";
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
