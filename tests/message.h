#pragma once
#include <functional>
#include <string>

#include "rlx/error.h"

namespace rlx::test {

/// The message of an error, without the line of the test that caused it.
inline std::string without_place(std::string message) { return message.substr(0, message.find(", built at ")); }

/// The message of the Error that `action` throws, with the line that caused it; "no error" when it throws none.
inline std::string whole_error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}
inline std::string error_of(const std::function<void()>& action) { return without_place(whole_error_of(action)); }

}  // namespace rlx::test
