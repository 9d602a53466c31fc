#pragma once
#include <string>

#include "rlx/session.h"

/// What the commands that print launches share.
namespace rlx::command {

/// It runs once, so it is no part of a run's time.
inline bool is_prepared(const LaunchReport& launch) { return launch.kind == "prepared"; }

/// 12345678 -> "12.35M".
std::string with_unit(double value);

}  // namespace rlx::command
