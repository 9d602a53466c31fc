#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rlx {

/// A name from outside, in single quotes, fit for one line of an error message: control characters and bytes that are not
/// UTF-8 are written \xNN, and what exceeds 120 bytes is cut with "...".
std::string quote_name(std::string_view name);

/// Whether the text is well-formed UTF-8.
bool is_utf8(std::string_view text);
/// Throws Error naming `what`, the byte and its offset where it is not.
void check_utf8(std::string_view text, std::string_view what);

/// A list of names that fits into a message: the first five, quoted, and how many more there are.
std::string some_names(std::span<const std::string> names);

/// Up to three of `known` that `name` may have meant, nearest first: small edit distance, or one ends with the other
/// after a dot or slash ('encoder.weight' for 'model.encoder.weight').
std::vector<std::string_view> near_names(std::string_view name, std::span<const std::string_view> known);

/// " (near: 'a', 'b')" for the end of a message about an unknown name; empty when nothing is near.
std::string near_hint(std::string_view name, std::span<const std::string_view> known);

/// What may be meant by an unknown name of a short list, for the same place: " (near: 'a'; allowed: a, b, c)".
std::string near_or_allowed(std::string_view name, std::span<const std::string_view> known);

}  // namespace rlx
