#include <memory>

#include <fmt/ranges.h>

#include "base/names.h"
#include "command.h"
#include "formats/json/json.h"
#include "models/conversion/type_mix.h"
#include "options/compile_choices.h"
#include "options/warnings.h"
#include "rlx/convert.h"
#include "rlx/error.h"
#include "terminal/progress_bar.h"

namespace rlx::command {
namespace {

struct QuantizeCommand {
  std::string in, out, type = "Q4_K_M", importance;
  std::vector<std::string> overrides;
  bool pure = false, json = false;
  CompileChoices threads;
};

/// REGEX=TYPE.
std::pair<std::string, std::string> parse_override(const std::string& text) {
  const auto sign = text.rfind('=');
  if (sign == std::string::npos || sign == 0) fail("--tensor-type {}: REGEX=TYPE is needed", quote_name(text));
  return {text.substr(0, sign), text.substr(sign + 1)};
}

void print_error_table(const QuantizeReport& report) {
  fmt::print("{:<10} {:>8} {:>16} {:>16} {:>12} {:>16}\n", "type", "tensors", "values", "bytes", "bits/weight", "relative error");
  for (const QuantizedType& type : report.types)
    fmt::print("{:<10} {:>8} {:>16} {:>16} {:>12.3f} {:>16}\n", type.type, type.tensors, type.values, type.bytes,
               8.0 * static_cast<double>(type.bytes) / static_cast<double>(std::max<std::int64_t>(type.values, 1)),
               type.error_squares == 0 ? "none" : fmt::format("{:.3e}", type.relative_error()));
  fmt::print("{} -> {} bytes, {:.2f} bits a weight\n", report.source_bytes, report.bytes,
             8.0 * static_cast<double>(report.bytes) / static_cast<double>(std::max<std::int64_t>(report.values, 1)));
  if (!report.fallbacks.empty())
    fmt::print("rows of {} tensors are no whole blocks of the type of the mix, so that they got another: {}\n", report.fallbacks.size(),
               some_names(report.fallbacks));
  if (!report.unweighted.empty())
    fmt::print("the importance matrix has nothing for {} tensors: {}\n", report.unweighted.size(), some_names(report.unweighted));
}

void print_error_json(const QuantizeReport& report) {
  json::Value types = json::Value::array();
  for (const QuantizedType& type : report.types)
    types.push_back(
        {{"type", type.type},
         {"tensors", type.tensors},
         {"values", type.values},
         {"bytes", type.bytes},
         {"bits_per_weight", 8.0 * static_cast<double>(type.bytes) / static_cast<double>(std::max<std::int64_t>(type.values, 1))},
         {"relative_rms_error", type.relative_error()}});
  const json::Value out{{"source_bytes", report.source_bytes}, {"bytes", report.bytes},         {"values", report.values},
                        {"types", std::move(types)},           {"fallbacks", report.fallbacks}, {"unweighted", report.unweighted}};
  fmt::print("{}\n", out.dump(2, ' ', false, json::Value::error_handler_t::replace));
}

QuantizeReport with_progress(const QuantizeCommand& command, ConvertOptions options) {
  ProgressBar bar("quantizing");
  options.progress = [&](std::size_t done, std::size_t total) { bar.update(done, total); };
  return quantize(command.in, command.out, options);
}

void run_quantize(const QuantizeCommand& command) {
  ConvertOptions options{.type = command.type, .importance = command.importance, .pure = command.pure, .threads = command.threads.threads};
  for (const std::string& text : command.overrides) options.tensor_types.push_back(parse_override(text));
  warn_about_importance(options);
  const QuantizeReport report = with_progress(command, std::move(options));
  warn_about_losses(report);
  warn_about_size(report);
  (command.json ? print_error_json : print_error_table)(report);
}

}  // namespace

void add_quantize(CLI::App& app) {
  auto options = std::make_shared<QuantizeCommand>();
  CLI::App* command = app.add_subcommand("quantize", "Write a model file with other types of weights");
  command
      ->add_option("in", options->in,
                   "The model: a GGUF file of any types (any part of a split one), or a folder (config.json, safetensors files)")
      ->required()
      ->type_name("IN");
  command->add_option("out", options->out, "The GGUF file to write")->required()->type_name("OUT");
  std::vector<std::string_view> mixes;
  for (const TypeMix& mix : type_mixes()) mixes.push_back(mix.name);
  command->add_option("--type", options->type, fmt::format("Type of the weights (default: Q4_K_M): {}", fmt::join(mixes, ", ")))
      ->type_name("TYPE");
  command->add_option("--imatrix", options->importance, "Importance of the columns of each matrix: a GGUF imatrix or the older .dat")
      ->type_name("FILE");
  command->add_flag("--pure", options->pure, "One type for all matrices, without better ones for those that matter most");
  command
      ->add_option("--tensor-type", options->overrides,
                   "A type for the matrices whose names the regular expression finds; the first that fits counts")
      ->type_name("REGEX=TYPE");
  command->add_flag("--json", options->json, "The report as one JSON object");
  add_threads(*command, options->threads);
  command->footer(
      "Prints for each type what it holds and its relative error: the root of the mean square of written - source over that of the "
      "source.\n"
      "Vectors, norms and routers keep their type. The file appears under its name when it is complete.\n\n"
      "Examples:\n  rlx quantize model-f16.gguf model-q4.gguf\n  rlx quantize in.gguf out.gguf --type IQ4_XS --imatrix imatrix.gguf "
      "--tensor-type 'ffn_down=Q5_K'");
  command->callback([options] { run_quantize(*options); });
}

}  // namespace rlx::command
