#include <fmt/core.h>

#include "command.h"
#include "rlx/session.h"

namespace rlx::command {

void add_devices(CLI::App& app) {
  app.add_subcommand("devices", "List the devices that models can run on")->callback([] {
    for (const Device& device : Device::all()) fmt::print("{}  {}\n", device.name(), device.description());
    for (const std::string& line : Device::missing()) fmt::print("{}\n", line);
  });
}

}  // namespace rlx::command
