#pragma once
#include <functional>
#include <optional>
#include <string>

#include "rlx/text.h"

namespace rlx {

/// Takes an array out of a text and gives the name that stands for it, or leaves it in the text.
using KeepArray = std::function<std::optional<std::string>(const Array&)>;
/// The array of a name; throws Error for an unknown one.
using FindArray = std::function<Array(const std::string& name)>;

/// The text form with some arrays kept elsewhere, by name: `f32[1000] array "#0"`.
std::string to_text(const Graph& graph, const KeepArray& keep);
Graph parse_graph(std::string_view text, std::string_view what, const FindArray& find);

}  // namespace rlx
