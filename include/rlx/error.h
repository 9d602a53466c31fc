#pragma once
#include <stdexcept>
#include <string>
#include <utility>

#include <fmt/core.h>

namespace rlx {

/// What a user can cause: a bad file, shape, name or argument. The message names the op or file, the field, the value seen
/// and the values allowed.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A fault of RLX itself: a pass broke a rule that it promised to keep. The message names the pass and the node.
class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

/// What an error says that happens now: see fail.
std::string in_call(std::string message);

// In the library, so that programs that include this link to it alone.
[[noreturn]] void throw_error(fmt::string_view text, fmt::format_args args);
[[noreturn]] void throw_internal_error(fmt::string_view text, fmt::format_args args);

/// Throws Error with a formatted message. While a builder works for a line of the caller's code on this thread, the message begins with the
/// builder that is called there and ends with ", built at examples/hello.cpp:17".
template <class... Args>
[[noreturn]] void fail(fmt::format_string<Args...> text, Args&&... args) {
  throw_error(text, fmt::make_format_args(args...));
}

/// Throws InternalError with a formatted message.
template <class... Args>
[[noreturn]] void fail_internal(fmt::format_string<Args...> text, Args&&... args) {
  throw_internal_error(text, fmt::make_format_args(args...));
}

}  // namespace rlx
