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

/// ", built at examples/hello.cpp:17" while a builder works for that line of the caller's code on this thread; else nothing.
std::string build_place();

/// Throws Error with a formatted message, and the place of the call that builds a graph if there is one.
template <class... Args>
[[noreturn]] void fail(fmt::format_string<Args...> text, Args&&... args) {
  throw Error(fmt::format(text, std::forward<Args>(args)...) + build_place());
}

/// Throws InternalError with a formatted message.
template <class... Args>
[[noreturn]] void fail_internal(fmt::format_string<Args...> text, Args&&... args) {
  throw InternalError(fmt::format(text, std::forward<Args>(args)...));
}

}  // namespace rlx
