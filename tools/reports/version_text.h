#pragma once
#include <string>
#include <string_view>

namespace rlx::command {

/// The commit that was built, "-dirty" behind it where files were changed since; empty where there was no clone to ask.
extern const std::string_view commit;

/// "rlx 0.1.0 (commit 0123456789ab)" or "rlx 0.1.0 (unknown commit)".
std::string version_text();

}  // namespace rlx::command
