#pragma once
#include <filesystem>

namespace rlx::command {

/// For a file that is written when long work has ended. Throws Error when it could not be, so that no work is lost.
void check_writable(const std::filesystem::path& file);

}  // namespace rlx::command
