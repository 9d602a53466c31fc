#include <filesystem>
#include <memory>
#include <string>

#include <fmt/core.h>

#include "command.h"
#include "options/compile_choices.h"
#include "options/warnings.h"
#include "rlx/convert.h"
#include "rlx/error.h"
#include "terminal/progress_bar.h"

namespace rlx::command {
namespace {

struct ConvertCommand {
  std::string in, out, base, type, dtype;
  CompileChoices threads;
};

/// An option that says nothing of what is written was meant for something else.
void check_choices(const ConvertCommand& command) {
  const bool is_gguf = std::filesystem::path(command.out).extension() == ".gguf";
  if (!is_gguf && !command.type.empty() && command.type != "auto")
    fail("--type {}: only a .gguf has such types, and {} is none (--dtype is for it)", command.type, command.out);
  if (!command.base.empty() && !(command.type.empty() && command.dtype.empty()))
    fail("--base: an adapter keeps its types (without --type and --dtype)");
  if (is_gguf && !command.dtype.empty()) fail("--dtype {}: {} is a GGUF file (--type is for it)", command.dtype, command.out);
}

QuantizeReport with_progress(const ConvertCommand& command, ConvertOptions options) {
  ProgressBar bar("converting");
  options.progress = [&](std::size_t done, std::size_t total) { bar.update(done, total); };
  return convert(command.in, command.out, options);
}

void run_convert(const ConvertCommand& command) {
  check_choices(command);
  ConvertOptions options{.type = command.type == "auto" ? "" : command.type,
                         .dtype = parse_dtype(command.dtype).value_or(f32),
                         .base = command.base,
                         .threads = command.threads.threads};
  warn_about_importance(options);
  const QuantizeReport report = with_progress(command, std::move(options));
  warn_about_losses(report);
  for (const QuantizedType& type : report.types) fmt::print("{:<10} {:>8} tensors {:>16} bytes\n", type.type, type.tensors, type.bytes);
  for (const std::filesystem::path& file : report.files) fmt::print("{}: {} bytes\n", file.string(), std::filesystem::file_size(file));
}

}  // namespace

void add_convert(CLI::App& app) {
  auto options = std::make_shared<ConvertCommand>();
  CLI::App* command = app.add_subcommand("convert", "Write a model in another file format");
  command->add_option("in", options->in, "A model's folder (config.json, safetensors files), a GGUF file, or an adapter in either form")
      ->required()
      ->type_name("IN");
  command->add_option("out", options->out, "A file that ends with .gguf or .safetensors, or a folder, made of a GGUF file")
      ->required()
      ->type_name("OUT");
  command
      ->add_option("--type", options->type,
                   "Types of the weights in a .gguf, as of `rlx quantize`; auto (default) keeps those of the source")
      ->type_name("TYPE");
  command->add_option("--dtype", options->dtype, "Type of all floats in a .safetensors and in a folder (default: f32)")
      ->check(CLI::IsMember({"f32", "f16", "bf16"}).description(""))
      ->type_name("f32|f16|bf16");
  command->add_option("--base", options->base, "Of an adapter the model that it changes: a folder or a GGUF file")->type_name("PATH");
  add_threads(*command, options->threads);
  command->footer(
      "A GGUF file made from a folder has the names, the order of rows and the metadata that other readers of its architecture expect.\n"
      "A .safetensors file has the names of the source. A folder has config.json, model.safetensors and the tokenizer, as Hugging Face "
      "lays "
      "them out.\n\n"
      "Examples:\n  rlx convert MODEL_DIR model.gguf --type Q4_K_M\n  rlx convert model.gguf model.safetensors --dtype bf16\n"
      "  rlx convert model.gguf MODEL_DIR\n  rlx convert ADAPTER_DIR adapter.gguf --base MODEL_DIR");
  command->callback([options] { run_convert(*options); });
}

}  // namespace rlx::command
