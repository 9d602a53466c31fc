#include "models/families/layer_name.h"

#include <charconv>

namespace rlx {

std::optional<LayerName> layer_name(std::string_view name, std::string_view layers) {
  if (!name.starts_with(layers) || !name.substr(layers.size()).starts_with('.')) return std::nullopt;
  name.remove_prefix(layers.size() + 1);
  const std::size_t digits = name.find_first_not_of("0123456789");
  if (digits == std::string_view::npos || name[digits] != '.') return std::nullopt;
  LayerName found{.layer = 0, .number = name.substr(0, digits), .rest = name.substr(digits + 1)};
  const std::string_view number = found.number;
  if (std::from_chars(number.data(), number.data() + number.size(), found.layer).ec != std::errc()) return std::nullopt;
  return found;
}

std::optional<std::int64_t> gguf_layer(std::string_view name) {
  const std::size_t at = name.find("blk.");
  if (at == std::string_view::npos) return std::nullopt;
  const auto found = layer_name(name.substr(at), "blk");
  return found ? std::optional(found->layer) : std::nullopt;
}

}  // namespace rlx
