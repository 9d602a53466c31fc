#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "rlx/model.h"
#include "rlx/program_file.h"

/// What the commands that compile have in common.
namespace rlx::command {

struct CompileChoices {
  std::string device;                                           // a name; empty: Device::usual
  std::vector<std::pair<std::string, std::int64_t>> layers_on;  // by device
  int threads = 0;
  bool no_claims = false, no_fusion = false, no_host = false, tune = false;
  std::optional<Precision> precision;
  std::string calibration;  // a file; empty: none
  bool round_activations = true;
};

/// --threads N
CLI::Option* add_threads(CLI::App& command, CompileChoices& choices);
/// --device NAME
CLI::Option* add_device(CLI::App& command, CompileChoices& choices);
/// --device, --no-host, --no-claims and --no-fusion
std::vector<CLI::Option*> add_kernel_choices(CLI::App& command, CompileChoices& choices);
/// --tune, of commands that run what they compile
CLI::Option* add_tune(CLI::App& command, CompileChoices& choices);

/// --precision f32|bf16|f16|int8; `usual` is the help's word for what it is otherwise.
CLI::Option* add_precision(CLI::App& command, CompileChoices& choices, std::string_view usual = "f32");
/// The same and --calibration FILE, of commands for graphs and for models that `rlx calibrate` is for.
std::vector<CLI::Option*> add_calibrated_precision(CLI::App& command, CompileChoices& choices);
/// The word where it is usual_precision of the model.
inline constexpr std::string_view that_of_model = "bf16 for a model stored so, where the device multiplies it, else f32";

/// --activations int8|f32, of commands for models that may have weights in blocks
CLI::Option* add_activations(CLI::App& command, CompileChoices& choices);

/// --device to --threads, of commands that run a language model
void add_model_choices(CLI::App& command, CompileChoices& choices);

/// --pooling MODE, of commands for sentence encoders
CLI::Option* add_pooling(CLI::App& command, std::string& pooling);

/// Loading and packing of weights show a bar from then on. Throws Error for a device that is not there, and for a calibration that
/// cannot be read, or without int8.
Session open_session(const CompileChoices& choices, Precision usual = Precision::f32);
/// The same for instruction sets of the CPU, or what it has where `level` is empty.
Session open_session_at(const CompileChoices& choices, const std::string& level);
/// A program from a file, in a session of its own, for the device that the choices name. Throws Error where they say how to compile.
Executable open_program(const CompileChoices& choices, const std::string& file);
/// The same, in the model's usual_precision.
Session open_session(const CompileChoices& choices, const std::filesystem::path& model);

/// The sessions of --layers-on, as `session` but for their devices.
std::vector<LayersOn> open_layers_on(const CompileChoices& choices, const Session& session);

/// One line on stderr when the session's kernels could not be kept on disk: the command has done its work, but the next one compiles again.
void warn_about_cache(const Session& session);

}  // namespace rlx::command
