#include "models/families/weight_names.h"

#include <algorithm>

#include <fmt/core.h>

#include "models/families/layer_name.h"

namespace rlx {

namespace {

/// True for `part` itself and for every name below it.
bool is_below(std::string_view name, std::string_view part) {
  return name.starts_with(part) && (name.size() == part.size() || name[part.size()] == '.');
}

std::string replaced(std::string_view pattern, std::string_view what, std::string_view with) {
  std::string text(pattern);
  if (const std::size_t at = text.find(what); at != std::string::npos) text.replace(at, what.size(), with);
  return text;
}

}  // namespace

TensorPlace place_of(std::string_view param, std::int64_t experts, const WeightNames& names) {
  const auto in_layer = layer_name(param, "layers");
  const std::string_view rest = in_layer ? in_layer->rest : param;
  const auto& table = in_layer ? names.layer : names.whole;
  for (auto line = table.rbegin(); line != table.rend(); ++line) {
    const auto own = std::find_if(line->params.begin(), line->params.end(), [&](std::string_view p) { return is_below(rest, p); });
    if (own == line->params.end()) continue;
    const std::string_view ending = rest.substr(own->size());
    const auto full = [&](std::string_view layers, std::string_view name) {
      return in_layer ? fmt::format("{}.{}.{}{}", layers, in_layer->number, name, ending) : fmt::format("{}{}", name, ending);
    };
    TensorPlace place{.groups = line->groups, .transposed = line->transposed};
    if (line->params.size() > 1)
      for (std::string_view each : line->params) place.siblings.push_back(full("layers", each));
    const std::string tensor = full(names.layers, line->tensor);
    place.stacked = tensor.find("{e}") != std::string::npos;
    const std::int64_t count = place.stacked ? experts : 1;
    for (std::int64_t e = 0; e < count; ++e) place.tensors.push_back(replaced(tensor, "{e}", std::to_string(e)));
    return place;
  }
  if (in_layer) return {.tensors = {fmt::format("{}.{}.{}", names.layers, in_layer->number, rest)}, .listed = false};
  return {.tensors = {std::string(param)}, .listed = false};
}

bool is_unused(std::string_view name, const WeightNames& names) {
  const auto in_layer = layer_name(name, names.layers);
  if (in_layer && names.used_layers > 0 && static_cast<std::size_t>(in_layer->layer) >= names.used_layers) return true;
  return std::any_of(names.unused.begin(), names.unused.end(),
                     [&](std::string_view part) { return is_below(name, part) || (in_layer && is_below(in_layer->rest, part)); });
}

}  // namespace rlx
