#pragma once
#include <filesystem>

namespace rlx::command {

/// For a file that is written when long work has ended. Throws Error when it could not be, so that no work is lost, and when it would take
/// the place of the text that is `read`.
void check_writable(const std::filesystem::path& file, const std::filesystem::path& read = {});

/// Shows at once what was printed. Throws std::system_error where standard output takes nothing more: what follows would be lost.
void flush_output();

}  // namespace rlx::command
