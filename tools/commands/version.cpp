#include "rlx/version.h"

#include <fmt/core.h>

#include "command.h"
#include "reports/version_text.h"

namespace rlx::command {

std::string version_text() {
  return fmt::format("rlx {} ({})", version, commit.empty() ? "unknown commit" : fmt::format("commit {}", commit));
}

void add_version(CLI::App& app) {
  app.add_subcommand("version", "Print the version and the commit")->callback([] { fmt::print("{}\n", version_text()); });
}

}  // namespace rlx::command
