#include "rlx/version.h"

#include <fmt/core.h>

#include "command.h"

namespace rlx::command {

void add_version(CLI::App& app) {
  app.add_subcommand("version", "Print the version")->callback([] { fmt::print("rlx {}\n", version); });
}

}  // namespace rlx::command
