#include <algorithm>
#include <cstdio>
#include <memory>

#include <fmt/ranges.h>

#include "command.h"
#include "formats/json/json.h"
#include "options/compile_choices.h"
#include "rlx/error.h"
#include "rlx/verify.h"
#include "terminal/say.h"

namespace rlx::command {
namespace {

struct VerifyOptions {
  std::vector<std::string> folders;
  std::string model;
  bool json = false;
  CompileChoices compile;
};

void print_verified_table(const std::string& folder, const std::vector<VerifiedTensor>& tensors) {
  fmt::print("{}\n", folder);
  for (const VerifiedTensor& tensor : tensors) {
    fmt::print("  {:<24} {:>16}  difference {:.3g}  allowed {:.3g}  {}\n", tensor.name, fmt::format("[{}]", fmt::join(tensor.shape, ",")),
               tensor.difference, tensor.allowed, tensor.passed() ? "ok" : "OVER");
  }
}

/// One object a tensor, one line each.
void print_verified_json(const std::string& folder, const std::vector<VerifiedTensor>& tensors) {
  for (const VerifiedTensor& tensor : tensors) {
    json::Value line{{"folder", folder},
                     {"tensor", tensor.name},
                     {"shape", tensor.shape},
                     {"compared", tensor.compared},
                     {"difference", tensor.difference},  // NaN is written as null
                     {"allowed", tensor.allowed},
                     {"passed", tensor.passed()}};
    fmt::print("{}\n", json::line(line));
  }
}

/// Whether all is as recorded. What cannot be compared at all does not keep the other folders from it.
bool verify_one(const VerifyOptions& options, const std::string& folder, const Session& session) try {
  const auto tensors = options.model.empty() ? verify_folder(folder, session) : verify_model(options.model, folder, session);
  (options.json ? print_verified_json : print_verified_table)(folder, tensors);
  return std::all_of(tensors.begin(), tensors.end(), [](const VerifiedTensor& tensor) { return tensor.passed(); });
} catch (const Error& error) {
  std::fflush(stdout);  // in the order of the folders
  say("rlx: {}\n", error.what());
  return false;
}

void verify(const VerifyOptions& options) {
  const Session session = open_session(options.compile);
  std::size_t failed = 0;
  for (const std::string& folder : options.folders) failed += verify_one(options, folder, session) ? 0 : 1;
  warn_about_cache(session);
  if (failed != 0) throw CLI::RuntimeError(1);
}

}  // namespace

void add_verify(CLI::App& app) {
  auto options = std::make_shared<VerifyOptions>();
  CLI::App* command = app.add_subcommand("verify", "Run model folders and compare with outputs recorded from another implementation");
  command->add_option("folders", options->folders, "Folders with config.json, model.safetensors and expected.safetensors")
      ->required()
      ->type_name("DIR");
  command->add_option("--model", options->model, "A GGUF file or folder to run in place of the folder's own language model")
      ->type_name("PATH");
  command->add_flag("--json", options->json, "One JSON object a line for each recorded tensor");
  add_kernel_choices(*command, options->compile);
  add_tune(*command, options->compile);
  add_activations(*command, options->compile);
  add_calibrated_precision(*command, options->compile);
  add_threads(*command, options->compile);
  command->footer(
      "A tensor may differ by ten times the recording's own distance between f32 and f64, whatever the precision. Exit status 1 when one "
      "is\n"
      "over, or a folder cannot be compared; the others are compared all the same.");
  command->callback([options] { verify(*options); });
}

}  // namespace rlx::command
