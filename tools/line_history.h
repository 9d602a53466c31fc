#pragma once
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

/// Lines that were typed in earlier sessions. Nothing that goes wrong with their file disturbs the session: then there are none.
namespace rlx::command {

/// rlx/history in $XDG_STATE_HOME, else in ~/.local/state; empty where neither is known.
std::filesystem::path history_file();

/// The last `most` lines of the file, the oldest first.
std::vector<std::string> read_history(const std::filesystem::path& file, std::size_t most);

/// Replaces the file by lines that each end with a newline; made where it is missing, for its owner alone. False where that failed.
bool write_history(const std::filesystem::path& file, std::string_view lines);

}  // namespace rlx::command
