#include <fmt/core.h>

#include "command.h"
#include "rlx/session.h"

namespace rlx::command {

void add_devices(CLI::App& app) {
  app.add_subcommand("devices", "List the devices that models can run on")->callback([] {
    fmt::print("cpu  {}\n", Device::cpu().description());
  });
}

}  // namespace rlx::command
