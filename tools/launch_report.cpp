#include "launch_report.h"

#include <fmt/core.h>

namespace rlx::command {

std::string with_unit(double value) {
  if (value < 1000) return fmt::format("{:.0f}", value);
  if (value < 1e6) return fmt::format("{:.2f}k", value / 1e3);
  if (value < 1e9) return fmt::format("{:.2f}M", value / 1e6);
  return fmt::format("{:.2f}G", value / 1e9);
}

}  // namespace rlx::command
