#include "options/compile_choices.h"

#include <utility>

#include <fmt/ranges.h>

#include "rlx/model.h"
#include "terminal/progress_bar.h"
#include "terminal/say.h"

namespace rlx::command {

CLI::Option* add_threads(CLI::App& command, CompileChoices& choices) {
  return command.add_option("--threads", choices.threads, "Threads to use, 1..1024 (default: all that the process may use)")
      ->type_name("N")
      ->check(CLI::Range(1, 1024).description(""));
}

CLI::Option* add_device(CLI::App& command, CompileChoices& choices) {
  return command
      .add_option(
          "--device", choices.device,
          "Where it is computed: a name that 'rlx devices' lists, its kind, or auto for what is expected to be the fastest (default: "
          "RLX_DEVICE, else cpu)")
      ->type_name("NAME");
}

namespace {

/// --layers-on NAME=LAYERS
void add_layers_on(CLI::App& command, CompileChoices& choices) {
  const auto choose = [&choices](const std::vector<std::string>& parts) {
    for (const std::string& part : parts) {
      const std::size_t sign = part.rfind('=');
      std::int64_t layers = 0;
      if (sign == std::string::npos || !CLI::detail::lexical_cast(part.substr(sign + 1), layers) || layers < 1)
        throw CLI::ValidationError("--layers-on", fmt::format("{} (allowed: NAME=LAYERS, such as cuda:0=20)", part));
      choices.layers_on.emplace_back(part.substr(0, sign), layers);
    }
  };
  command
      .add_option_function<std::vector<std::string>>(
          "--layers-on", choose,
          "The first layers on other devices, each with its own weights and caches: cuda:0=20,opencl:0=4; --device computes the rest")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("NAME=LAYERS");
}

}  // namespace

std::vector<CLI::Option*> add_kernel_choices(CLI::App& command, CompileChoices& choices) {
  return {add_device(command, choices),
          command.add_flag("--no-host", choices.no_host, "An error where a device lacks a kernel, which the CPU would compute else"),
          command.add_flag("--no-claims", choices.no_claims, "Generate all kernels; use none written by hand"),
          command.add_flag("--no-fusion", choices.no_fusion, "One kernel for each node")};
}

CLI::Option* add_tune(CLI::App& command, CompileChoices& choices) {
  return command.add_flag("--tune", choices.tune,
                          "Time ways to cut matrix products into blocks, once for each size; what is chosen is kept on disk");
}

CLI::Option* add_precision(CLI::App& command, CompileChoices& choices, std::string_view usual) {
  const auto words = enum_words(Precision{});
  const auto choose = [&choices](const std::string& word) { choices.precision = precision_named(word); };
  return command
      .add_option_function<std::string>(
          "--precision", choose, fmt::format("What matrix products of f32 compute with: {} (default: {})", fmt::join(words, ", "), usual))
      ->type_name("PRECISION")
      ->check(CLI::IsMember(std::vector<std::string>(words.begin(), words.end())).description(""));
}

std::vector<CLI::Option*> add_calibrated_precision(CLI::App& command, CompileChoices& choices) {
  CLI::Option* precision = add_precision(command, choices);
  CLI::Option* calibration = command
                                 .add_option("--calibration", choices.calibration,
                                             "With int8: constant scales, from a file that 'rlx calibrate' wrote for this graph")
                                 ->type_name("FILE")
                                 ->needs(precision);
  return {precision, calibration};
}

CLI::Option* add_activations(CLI::App& command, CompileChoices& choices) {
  const auto choose = [&choices](const std::string& word) { choices.round_activations = word == "int8"; };
  return command
      .add_option_function<std::string>("--activations", choose,
                                        "What meets weights in blocks (Q4_K and the like): int8, rounded to 8 bits, or f32, as it is: "
                                        "on the CPU weights then take the memory of f32 (default: int8)")
      ->type_name("TYPE")
      ->check(CLI::IsMember(std::vector<std::string>{"int8", "f32"}).description(""));
}

void add_model_choices(CLI::App& command, CompileChoices& choices) {
  add_kernel_choices(command, choices);
  add_layers_on(command, choices);
  add_precision(command, choices, that_of_model);
  add_activations(command, choices);
  add_threads(command, choices);
}

CLI::Option* add_pooling(CLI::App& command, std::string& pooling) {
  return command
      .add_option("--pooling", pooling,
                  "How the states of a text's tokens become one vector: cls, max, mean, mean_sqrt_len_tokens, weightedmean or lasttoken; "
                  "needed where the model does not say it")
      ->type_name("MODE");
}

namespace {

Device device_of(const CompileChoices& choices) { return choices.device.empty() ? Device::usual() : Device::named(choices.device); }

}  // namespace

namespace {

SessionOptions options_of(const CompileChoices& choices, Precision usual) {
  SessionOptions options;
  options.threads = choices.threads;
  options.claims = !choices.no_claims;
  options.fuse = !choices.no_fusion;
  options.host = !choices.no_host;
  options.tune = choices.tune;
  options.precision = choices.precision.value_or(usual);
  options.round_activations = choices.round_activations;
  if (!choices.calibration.empty()) options.calibration = load_calibration(choices.calibration);
  return options;
}

}  // namespace

Session open_session(const CompileChoices& choices, Precision usual) {
  show_progress();
  return Session(device_of(choices), options_of(choices, usual));
}

Session open_session_at(const CompileChoices& choices, const std::string& level) {
  show_progress();
  SessionOptions options = options_of(choices, Precision::f32);
  options.cpu_level = level;
  return Session(device_of(choices), options);
}

Executable open_program(const CompileChoices& choices, const std::string& file) {
  if (choices.no_claims || choices.no_fusion || choices.precision)
    fail("{}: it is compiled: --no-claims, --no-fusion and --precision are for 'rlx compile'", file);
  show_progress();
  return ProgramFile::load(file, device_of(choices), options_of(choices, Precision::f32));
}

std::vector<LayersOn> open_layers_on(const CompileChoices& choices, const Session& session) {
  std::vector<LayersOn> parts;
  for (const auto& [name, layers] : choices.layers_on) {
    const Device device = Device::named(name);
    parts.push_back({device == session.device() ? session : Session(device, options_of(choices, session.precision())), layers});
  }
  return parts;
}

Session open_session(const CompileChoices& choices, const std::filesystem::path& model) {
  return open_session(choices, usual_precision(model, device_of(choices)));
}

void warn_about_cache(const Session& session) {
  static bool is_said = false;
  const std::string reason = session.counters().cache_error;
  if (reason.empty() || std::exchange(is_said, true)) return;
  say("rlx: nothing that was compiled or timed is kept: {} (RLX_CACHE may name another folder)\n", reason);
}

}  // namespace rlx::command
