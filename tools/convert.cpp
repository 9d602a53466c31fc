#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>

#include <fmt/core.h>

#include "base/cpu_count.h"
#include "base/names.h"
#include "command.h"
#include "compile_choices.h"
#include "formats/checkpoint.h"
#include "models/dense_model.h"
#include "models/folder_source.h"
#include "models/folder_writer.h"
#include "models/quantised/folder_weights.h"
#include "models/quantize_model.h"
#include "progress_bar.h"
#include "rlx/error.h"

namespace rlx::command {
namespace {

struct ConvertOptions {
  std::string in, out, type = "auto", dtype = "f32";
  CompileChoices threads;
};

bool is_folder_path(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_directory(path, error);
}

void convert_to_gguf(const ConvertOptions& options) {
  const TypeMix* mix = options.type == "auto" ? nullptr : &find_type_mix(options.type);
  const ModelSource source = is_folder_path(options.in) ? source_of_folder(options.in) : source_of(GgufFile::open(options.in));
  ProgressBar bar("converting");
  QuantizeOptions quantize;
  quantize.threads = options.threads.threads > 0 ? options.threads.threads : granted_cpus();
  quantize.progress = [&](std::size_t done, std::size_t total) { bar.update(done, total); };
  const QuantizeReport report = quantize_model(source, options.out, mix, quantize);
  for (const QuantizedType& type : report.types) fmt::print("{:<10} {:>8} tensors {:>16} bytes\n", type.type, type.tensors, type.bytes);
}

void convert_to_safetensors(const ConvertOptions& options) {
  const auto dtype = parse_dtype(options.dtype);
  const Checkpoint checkpoint = open_weights(options.in);
  ProgressBar bar("converting");
  write_dense(checkpoint, options.out, dtype.value_or(f32), [&](std::size_t done, std::size_t total) { bar.update(done, total); });
  fmt::print("{:<10} {:>8} tensors\n", options.dtype, checkpoint.names().size());
}

void convert_to_folder(const ConvertOptions& options) {
  const Checkpoint checkpoint = Checkpoint::open(options.in);
  if (checkpoint.gguf() == nullptr) fail("{}: a folder is made of a GGUF file", quote_name(options.in));
  ProgressBar bar("converting");
  write_model_folder(*checkpoint.gguf(), options.out, parse_dtype(options.dtype).value_or(f32),
                     [&](std::size_t done, std::size_t total) { bar.update(done, total); });
}

void convert(const ConvertOptions& options) {
  const std::string ending = std::filesystem::path(options.out).extension().string();
  if (ending == ".gguf") return convert_to_gguf(options);
  if (ending == ".safetensors") return convert_to_safetensors(options);
  if (ending.empty() || is_folder_path(options.out)) return convert_to_folder(options);
  fail("{}: the name of what is written must end with .gguf or .safetensors, or be that of a folder", quote_name(options.out));
}

}  // namespace

void add_convert(CLI::App& app) {
  auto options = std::make_shared<ConvertOptions>();
  CLI::App* command = app.add_subcommand("convert", "Write a model in another file format");
  command->add_option("in", options->in, "A model's folder (config.json, safetensors files) or a GGUF file")->required()->type_name("IN");
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
  add_threads(*command, options->threads);
  command->footer(
      "A GGUF file made from a folder has the names, the order of rows and the metadata that other readers of its architecture expect.\n"
      "A .safetensors file has the names of the source. A folder has config.json, model.safetensors and the tokenizer, as Hugging Face "
      "lays "
      "them out.\n\n"
      "Examples:\n  rlx convert MODEL_DIR model.gguf --type Q4_K_M\n  rlx convert model.gguf model.safetensors --dtype bf16\n"
      "  rlx convert model.gguf MODEL_DIR");
  command->callback([options] { convert(*options); });
}

}  // namespace rlx::command
