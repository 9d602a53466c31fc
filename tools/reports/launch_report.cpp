#include "reports/launch_report.h"

#include <algorithm>

#include <fmt/core.h>

namespace rlx::command {
namespace {

/// The parts between dots that are numbers become stars.
std::string without_numbers(std::string_view layer) {
  std::string out;
  while (!layer.empty()) {
    const std::size_t end = std::min(layer.find('.'), layer.size());
    const std::string_view part = layer.substr(0, end);
    const bool number = !part.empty() && part.find_first_not_of("0123456789") == std::string_view::npos;
    out += number ? "*" : part;
    if (end < layer.size()) out += '.';
    layer.remove_prefix(std::min(end + 1, layer.size()));
  }
  return out;
}

std::string label_of(std::string_view layer, std::string_view ops, std::string_view name) {
  if (ops.empty()) ops = name;
  return layer.empty() ? std::string(ops) : fmt::format("{}: {}", layer, ops);
}

}  // namespace

std::string label(const LaunchReport& launch) { return label_of(launch.layer, launch.ops, launch.name); }

std::string label_of_layers(const LaunchReport& launch) { return label_of(without_numbers(launch.layer), launch.ops, launch.name); }

std::string with_unit(double value, std::string_view unit) {
  const auto scaled = [&](double factor, std::string_view prefix) { return fmt::format("{:.2f} {}{}", value / factor, prefix, unit); };
  if (value < 1000) return fmt::format("{:.0f}{}{}", value, unit.empty() ? "" : " ", unit);
  if (value < 1e6) return scaled(1e3, "k");
  if (value < 1e9) return scaled(1e6, "M");
  return value < 1e12 ? scaled(1e9, "G") : scaled(1e12, "T");
}

std::string duration(double seconds) {
  return seconds < 1e-3 ? fmt::format("{:.2f} us", seconds * 1e6) : fmt::format("{:.3f} ms", seconds * 1e3);
}

}  // namespace rlx::command
