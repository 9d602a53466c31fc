#include <cmath>
#include <memory>

#include <fmt/ranges.h>

#include "command.h"
#include "compile_choices.h"
#include "formats/json.h"
#include "rlx/verify.h"

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
    fmt::print("{}\n", line.dump(-1, ' ', false, json::Value::error_handler_t::replace));
  }
}

void verify(const VerifyOptions& options) {
  const Session session = open_session(options.compile);
  std::size_t over = 0;
  for (const std::string& folder : options.folders) {
    const auto tensors = options.model.empty() ? verify_folder(folder, session) : verify_model(options.model, folder, session);
    (options.json ? print_verified_json : print_verified_table)(folder, tensors);
    for (const VerifiedTensor& tensor : tensors) over += tensor.passed() ? 0 : 1;
  }
  warn_about_cache(session);
  if (over != 0) throw CLI::RuntimeError(1);
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
  add_calibrated_precision(*command, options->compile);
  add_threads(*command, options->compile);
  command->footer(
      "A tensor may differ by ten times the recording's own distance between f32 and f64, whatever the precision. Exit status 1 when one "
      "is\n"
      "over.");
  command->callback([options] { verify(*options); });
}

}  // namespace rlx::command
