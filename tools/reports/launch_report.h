#pragma once
#include <string>
#include <string_view>

#include "rlx/session.h"

/// What the commands that print launches share.
namespace rlx::command {

/// It runs once, so it is no part of a run's time.
inline bool is_prepared(const LaunchReport& launch) { return launch.kind == "prepared"; }

/// "layers.3.attention.q: dot, add".
std::string label(const LaunchReport& launch);

/// The same for all layers with numbers: "layers.*.attention.q: dot, add".
std::string label_of_layers(const LaunchReport& launch);

/// (12345678, "B") -> "12.35 MB"; without a unit "12.35 M".
std::string with_unit(double value, std::string_view unit = "");
/// Microseconds below a millisecond, so that short times are no zeros.
std::string duration(double seconds);

}  // namespace rlx::command
