#pragma once
#include <cstddef>
#include <string_view>

#include "runtime/executable.h"

namespace rlx {

/// "parameter", "state" or "input".
std::string_view input_word(InputKind kind);

/// The index of an input of the wanted kind. Throws Error with near names.
std::size_t find_input(const Executable::State& state, std::string_view name, InputKind kind);

/// The array that was fed under a name, aligned as its elements are; the values of a range take the shape of the type. `what` is for
/// errors. Throws Error for elements of another dtype, where the shape of values is not clear, and as Storage::admit.
Array checked_feed(const Storage& storage, std::string_view what, std::string_view name, const Type& type, const Feed& feed);

/// The array to keep under a name until it is replaced: nobody but the caller knows how long bytes without an owner live. Throws Error
/// where it does not fit the input, whatever the sizes of symbols.
Array kept_feed(const Storage& storage, const Input& input, const Feed& feed);

}  // namespace rlx
