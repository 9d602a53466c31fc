#pragma once
#include <string>

namespace rlx::test {

/// The message of an error, without the line of the test that caused it.
inline std::string without_place(std::string message) { return message.substr(0, message.find(", built at ")); }

}  // namespace rlx::test
