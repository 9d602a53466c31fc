#pragma once
#include <string>
#include <vector>

#include "runtime/executable.h"

namespace rlx {

/// What a launch is for people; see LaunchReport.
struct LaunchName {
  std::string layer, ops, pass;
};

/// Of each launch of a program.
std::vector<LaunchName> launch_names(const Executable::State& state);

}  // namespace rlx
