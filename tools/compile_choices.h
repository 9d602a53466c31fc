#pragma once
#include <CLI/CLI.hpp>

#include "rlx/session.h"

/// What the commands that compile have in common.
namespace rlx::command {

struct CompileChoices {
  int threads = 0;
  bool no_claims = false, no_fusion = false, tune = false;
  Precision precision = Precision::f32;
  std::string calibration;  // a file; empty: none
};

/// --threads N
CLI::Option* add_threads(CLI::App& command, CompileChoices& choices);
/// --no-claims and --no-fusion
std::vector<CLI::Option*> add_kernel_choices(CLI::App& command, CompileChoices& choices);
/// --tune, of commands that run what they compile
CLI::Option* add_tune(CLI::App& command, CompileChoices& choices);

/// --precision f32|bf16|f16|int8 and --calibration FILE
std::vector<CLI::Option*> add_precision(CLI::App& command, CompileChoices& choices);

/// Loading and packing of weights show a bar from then on. Throws Error for a calibration that cannot be read, or without int8.
Session open_session(const CompileChoices& choices);

/// One line on stderr when the session's kernels could not be kept on disk: the command has done its work, but the next one compiles again.
void warn_about_cache(const Session& session);

}  // namespace rlx::command
