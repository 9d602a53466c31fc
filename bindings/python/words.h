#pragma once
#include <algorithm>
#include <array>
#include <string>

#include <fmt/ranges.h>

#include "rlx/error.h"
#include "rlx/precision.h"
#include "rlx/session.h"
#include "rlx/transform.h"

namespace rlx {

constexpr auto enum_words(Stage) { return std::array<std::string_view, 4>{"hir", "mir", "lir", "kernels"}; }

namespace python {

/// The value of an enumeration by its word. Throws Error naming the function, the argument and the words that are allowed.
template <class E>
E word(std::string_view function, std::string_view argument, const std::string& given) {
  const auto words = enum_words(E{});
  const auto it = std::find(words.begin(), words.end(), given);
  if (it == words.end()) fail("rlx.{}: argument '{}' is '{}' (allowed: {})", function, argument, given, fmt::join(words, ", "));
  return static_cast<E>(it - words.begin());
}

}  // namespace python
}  // namespace rlx
