#pragma once
#include <filesystem>
#include <span>
#include <string>
#include <vector>

/// What was typed in earlier sessions. Nothing that goes wrong with their file disturbs the session: then there are none.
namespace rlx::command {

/// rlx/history in $XDG_STATE_HOME, else in ~/.local/state; empty where neither is known.
std::filesystem::path history_file();

/// The last `most` entries of the file, the oldest first. An entry is a line, or several: a line that ends with \ goes on in the next one.
std::vector<std::string> read_history(const std::filesystem::path& file, std::size_t most);

/// Replaces the file by these entries, the oldest first; made where it is missing, for its owner alone. False where that failed.
bool write_history(const std::filesystem::path& file, std::span<const std::string> entries);

}  // namespace rlx::command
