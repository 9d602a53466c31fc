#pragma once
#include <CLI/CLI.hpp>

#include "rlx/cache_type.h"

namespace rlx::command {

/// --cache-type f32|f16|bf16|q8
CLI::Option* add_cache_type(CLI::App& command, CacheType& type);
/// --exact
void add_exact(CLI::App& command, bool& exact);

}  // namespace rlx::command
