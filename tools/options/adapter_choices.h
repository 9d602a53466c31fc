#pragma once
#include <CLI/CLI.hpp>
#include <vector>

#include "rlx/model.h"

namespace rlx::command {

/// --lora PATH[:SCALE], of commands that open a language model.
CLI::Option* add_adapters(CLI::App& command, std::vector<Adapter>& adapters);

}  // namespace rlx::command
