#include <memory>
#include <string_view>
#include <utility>

#include <fmt/core.h>

#include "command.h"
#include "rlx/session.h"

namespace rlx::command {
namespace {

/// Zero is what was not measured.
void print_figures(const DeviceFigures& figures) {
  constexpr double giga = 1e9, micro = 1e-6;
  if (figures.flops > 0) {
    fmt::print("    {:.0f} GFLOP/s of f32, {:.1f} GB/s from its memory, {:.1f} us a launch", figures.flops / giga, figures.bytes / giga,
               figures.launch / micro);
    if (figures.upload > 0) fmt::print(", {:.1f} GB/s to it, {:.1f} GB/s from it", figures.upload / giga, figures.download / giga);
    fmt::print("\n");
  }
  if (figures.arithmetic == 0) return fmt::print("    {:.1f} us an op\n", figures.step / micro);  // takes whole graphs
  fmt::print("    kernels of RLX: products of");
  std::string_view comma;
  for (const auto& [arithmetic, rate] : figures.products)
    if (rate > 0) fmt::print("{} {} {:.0f}", std::exchange(comma, ","), arithmetic, rate / giga);
  fmt::print(" GFLOP/s, attention {:.0f}, other arithmetic {:.0f}; {:.1f} GB/s of elements, {:.1f} GB/s of rows summed; {:.1f} us a launch",
             figures.attention / giga, figures.arithmetic / giga, figures.moved / giga, figures.reduced / giga, figures.step / micro);
  if (figures.transfer > 0) fmt::print(", {:.1f} us to bring an operand and read a result", figures.transfer / micro);
  fmt::print("\n");
}

}  // namespace

void add_devices(CLI::App& app) {
  auto measure = std::make_shared<bool>(false);
  CLI::App* const command = app.add_subcommand("devices", "List the devices that models can run on");
  command->add_flag("--measure", *measure, "Measure what each does, which takes some seconds; --device auto chooses by it");
  command->callback([measure] {
    for (const Device& device : Device::all()) {
      fmt::print("{}  {}\n", device.name(), device.description());
      if (*measure) print_figures(device.measure());
    }
    for (const std::string& line : Device::missing()) fmt::print("{}\n", line);
  });
}

}  // namespace rlx::command
