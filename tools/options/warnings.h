#pragma once
#include <cstdint>
#include <filesystem>

#include "options/compile_choices.h"
#include "rlx/convert.h"

/// One line each on stderr, where a person would want to know before an answer disappoints.
namespace rlx::command {

/// Where a model is to see more tokens than it was trained for.
void warn_about_context(std::int64_t tokens, std::int64_t trained);

/// Where --precision is given for a model whose matrices are in blocks, which it does not reach.
void warn_about_precision(const CompileChoices& choices, const std::filesystem::path& model);

/// Before weights get a type of 1 to 3 bits that is chosen badly without an importance matrix.
void warn_about_importance(const ConvertOptions& options);

/// What a file that was written cannot hold of its source.
void warn_about_losses(const QuantizeReport& report);

/// Where other types of weights have made it larger, by more than a hundredth.
void warn_about_size(const QuantizeReport& report);

}  // namespace rlx::command
