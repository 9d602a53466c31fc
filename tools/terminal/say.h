#pragma once

#include <fmt/core.h>

namespace rlx::command {

/// Makes streams that the caller closed (`>&-`) ones that cannot be read or written, so that no file that is opened takes their place.
/// Before anything else is opened.
void keep_standard_streams();

void say_text(fmt::string_view text, fmt::format_args arguments) noexcept;

/// Prints on stderr, as fmt::print does. Where that cannot be written, closed or full, nobody can be told, and the command goes on.
template <class... Args>
void say(fmt::format_string<Args...> text, Args&&... arguments) noexcept {
  say_text(text, fmt::make_format_args(arguments...));
}

}  // namespace rlx::command
