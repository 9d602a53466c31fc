#pragma once
#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <span>

#include "models/sampling/sampler.h"

namespace rlx::command {

/// --temperature, --top-k, --top-p, --min-p, --repeat-penalty and --seed; what `choices` holds are the initial values.
void add_sampling(CLI::App& command, sampling::Options& choices);

/// Chooses the tokens behind `prompt`, as GenerateOptions::choose. Throws Error naming an option that is not allowed.
std::function<std::int32_t(std::span<const float>, std::span<const std::int32_t>)> chooser(const sampling::Options& choices,
                                                                                           std::int64_t vocabulary,
                                                                                           std::span<const std::int32_t> prompt);

}  // namespace rlx::command
