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

/// Throws Error with a formatted message.
template <class... Args>
[[noreturn]] void fail(fmt::format_string<Args...> text, Args&&... args) {
  throw Error(fmt::format(text, std::forward<Args>(args)...));
}

/// Throws InternalError with a formatted message.
template <class... Args>
[[noreturn]] void fail_internal(fmt::format_string<Args...> text, Args&&... args) {
  throw InternalError(fmt::format(text, std::forward<Args>(args)...));
}

}  // namespace rlx
