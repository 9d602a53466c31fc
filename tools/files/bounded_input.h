#pragma once
#include <iosfwd>
#include <string>

namespace rlx::command {

/// All of a stream that may have no end (a pipe, a device). Throws Error naming it when it cannot be read or holds more than 1 GiB.
std::string read_bounded(std::istream& in, const std::string& name);

}  // namespace rlx::command
