#include "rlx/export.h"

#include <algorithm>
#include <memory>
#include <optional>

#include <fmt/ranges.h>

#include "command.h"
#include "files/graph_input.h"
#include "options/compile_choices.h"
#include "rlx/sentence_encoder.h"
#include "terminal/progress_bar.h"

namespace rlx::command {
namespace {

struct ExportOptions {
  std::string target, graph, out, calibration, pooling;
  std::vector<std::string> params, sizes, functions, block_types;
  std::optional<std::int64_t> context, chunk;
  CoreMlOptions coreml;
};

/// A folder or a GGUF file: a language model, or an encoder of texts.
bool is_model(const std::filesystem::path& path) { return std::filesystem::is_directory(path) || path.extension() == ".gguf"; }

bool has_states(const Graph& graph) {
  return std::ranges::any_of(graph.inputs(), [](const auto& input) { return input.first.kind == InputKind::state; });
}

/// NAME=SIZE, and NAME=SIZE/SIZE/... of symbols that stay open.
void read_sizes(const std::vector<std::string>& arguments, CoreMlOptions& options) {
  for (const std::string& argument : arguments) {
    const bool is_choice = argument.find('/') != std::string::npos;
    std::string name;
    for (const std::string& part : CLI::detail::split(argument, '/')) {
      const auto [symbol, size] = *parse_sizes({name.empty() ? part : fmt::format("{}={}", name, part)}).begin();
      name = symbol;
      if (is_choice) options.choices[symbol].push_back(size);
      else if (!options.sizes.emplace(symbol, size).second)
        throw CLI::ValidationError(fmt::format("{}: the symbol is given twice", argument));
    }
  }
}

/// TYPE, or FROM=TYPE.
void read_block_types(const std::vector<std::string>& arguments, CoreMlOptions& options) {
  for (const std::string& argument : arguments) {
    const std::size_t sign = argument.find('=');
    const std::string from = sign == std::string::npos ? "" : argument.substr(0, sign);
    if (!options.block_types.emplace(from, sign == std::string::npos ? argument : argument.substr(sign + 1)).second)
      throw CLI::ValidationError(fmt::format("{}: what becomes of these weights is given twice", argument));
  }
}

/// NAME:SIZES, where sizes are NAME=SIZE with commas between.
CoreMlFunction parse_function(const std::string& text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos || colon == 0) throw CLI::ValidationError(fmt::format("{}: not of the form NAME:SYMBOL=SIZE,...", text));
  if (colon + 1 == text.size()) return {text.substr(0, colon)};
  const std::map<std::string, std::int64_t> sizes = parse_sizes(CLI::detail::split(text.substr(colon + 1), ','));
  return {text.substr(0, colon), {sizes.begin(), sizes.end()}};
}

/// What a language model is exported as where the sizes are not given: a function for prompts, and one for single tokens.
void complete_sizes(const Graph& graph, const ModelGraphOptions& model, CoreMlOptions& options) {
  const std::map<std::string, std::int64_t> symbols = graph.symbols();
  if (!has_states(graph) || !options.functions.empty() || options.sizes.contains("S") || options.choices.contains("S") ||
      !symbols.contains("S"))
    return;
  const std::int64_t chunk = std::min(model.chunk, model.context);
  options.functions = {{"prompt", {{"S", chunk}}}, {"token", {{"S", 1}}}};
  options.sizes.emplace("R", 1);
  if (!symbols.contains("L")) return;
  options.sizes.emplace("C", 1);  // the chunks of recurrent layers
  for (CoreMlFunction& function : options.functions) function.sizes.emplace("L", function.sizes.at("S"));
}

CoreMlReport with_progress(ExportOptions& options, const SavedGraph& saved) {
  ProgressBar bar("writing");
  options.coreml.progress = [&](std::size_t done, std::size_t total) { bar.update(done, total); };
  return export_coreml(options.out, saved, options.coreml);
}

/// Weights that are stored alike: one line, with the tensor that has lost most.
void print_weights(const CoreMlReport& report) {
  std::map<std::string, std::vector<CoreMlReport::Stored>> alike;
  for (const CoreMlReport::Stored& each : report.weights)
    alike[fmt::format("{} as {}, {:.4g} bits a weight", each.type, each.form, each.bits)].push_back(each);
  for (const auto& [form, tensors] : alike) {
    const auto most = std::ranges::max_element(tensors, {}, &CoreMlReport::Stored::relative_error);
    fmt::print("{} {}: {}\n", tensors.size(), form,
               most->relative_error == 0 ? "exact" : fmt::format("relative error up to {:.2e} ({})", most->relative_error, most->name));
  }
}

void print_report(const CoreMlReport& report) {
  print_weights(report);
  for (const auto& [reason, ops] : report.kept_f32) {
    std::vector<std::string> counts;
    for (const auto& [op, count] : ops) counts.push_back(fmt::format("{} {}", count, op));
    fmt::print("f32: {} ({})\n", reason, fmt::join(counts, ", "));
  }
}

void export_for_coreml(ExportOptions& options) {
  ModelGraphOptions model;
  model.context = options.context.value_or(model.context);
  model.chunk = options.chunk.value_or(model.chunk);
  SavedGraph saved = !options.pooling.empty()  ? SentenceEncoder::saved(options.graph, {.pooling = options.pooling})
                     : is_model(options.graph) ? model_graph(options.graph, model)
                                               : read_graph(options.graph);
  read_arrays(options.params, saved.weights);
  read_sizes(options.sizes, options.coreml);
  read_block_types(options.block_types, options.coreml);
  for (const std::string& function : options.functions) options.coreml.functions.push_back(parse_function(function));
  complete_sizes(saved.graph, model, options.coreml);
  if (!options.calibration.empty()) options.coreml.calibration = load_calibration(options.calibration);
  print_report(with_progress(options, saved));
}

void export_for_web(const ExportOptions& options) {
  if (is_model(options.graph)) return export_web_model(options.out, options.graph, {.context = options.context.value_or(0)});
  SavedGraph saved = read_graph(options.graph);
  read_arrays(options.params, saved.weights);
  export_web(options.out, saved);
}

void add_paths(CLI::App& command, ExportOptions& options) {
  command
      .add_option("--target", options.target,
                  "coreml: a package for macOS 14, iOS 17 and newer, or what --minimum-target says; web: a folder for browsers with WebGPU")
      ->required()
      ->type_name("TARGET")
      ->check(CLI::IsMember(std::vector<std::string>{"coreml", "web"}));
  command
      .add_option(
          "graph", options.graph,
          "File with a graph in text form, or a graph file; a folder or GGUF file of a language model or an encoder; - reads standard "
          "input")
      ->required()
      ->type_name("GRAPH|MODEL");
  command.add_option("out", options.out, "Folder to write, for CoreML as a rule NAME.mlpackage; it must not exist")
      ->required()
      ->type_name("OUT");
  command.add_option("--param", options.params, "Values of parameters: NAME=FILE.npy, NAME=FILE.safetensors or FILE.safetensors")
      ->type_name("VALUES");
}

/// Of the package for CoreML.
void add_coreml_options(CLI::App& command, ExportOptions& options) {
  command
      .add_option(
          "--size", options.sizes,
          "coreml: size of a symbol, or all that a run may choose from, in the same order for each: NAME=SIZE/SIZE/... Other symbols "
          "stay open up to their bounds")
      ->type_name("NAME=SIZE");
  command
      .add_option("--function", options.functions,
                  "One of several functions that share the weights, with its sizes; the first is the default. Of a language model without "
                  "sizes: prompt:S=64 and token:S=1, with R=1")
      ->type_name("NAME:SYMBOL=SIZE,...");
  command
      .add_option("--minimum-target", options.coreml.minimum_target, "iOS 16, 17, 18 or 26, and what came with it; 17, or 18 if need be")
      ->type_name("VERSION")
      ->check(CLI::IsMember(std::vector<int>{16, 17, 18, 26}));
  const std::map<std::string, Precision> precisions{{"f32", Precision::f32}, {"f16", Precision::f16}, {"int8", Precision::int8}};
  command
      .add_option("--precision", options.coreml.precision, "Of products, convolutions and decoded weights: f32, f16, or int8 of products")
      ->transform(CLI::CheckedTransformer(precisions).description(""))
      ->type_name("PRECISION");
  command
      .add_option(
          "--weights", options.block_types,
          "What weights in blocks become: F16, or another type such as Q4_0, of all or of one type: FROM=TYPE. Their error is printed")
      ->type_name("[FROM=]TYPE");
  command.add_flag("--nested-scales", options.coreml.nested_scales,
                   "Scales of blocks that are products of two numbers stay such: smaller packages, as exact");
  command
      .add_option("--calibration", options.calibration,
                  "Ranges for --precision int8, as rlx calibrate writes them; else a run finds its own")
      ->type_name("FILE");
  command.add_flag("--philox", options.coreml.computes_random_bits,
                   "coreml: random bits are computed, the same as everywhere; else they are inputs random_bits_0 and so on");
}

/// Of language models and encoders.
void add_model_options(CLI::App& command, ExportOptions& options) {
  command.add_option("--context", options.context, "Tokens that the caches of a language model hold: 2048, or 1024 for the web")
      ->check(CLI::PositiveNumber)
      ->type_name("TOKENS");
  command.add_option("--chunk", options.chunk, "coreml: most tokens of a run of a language model, which bounds S; 64")
      ->check(CLI::PositiveNumber)
      ->type_name("TOKENS");
  add_pooling(command, options.pooling);
}

/// What Xcode shows.
void add_description(CLI::App& command, ExportOptions& options) {
  command.add_option("--description", options.coreml.description, "What Xcode shows of the model, as it does of the next three");
  command.add_option("--model-version", options.coreml.version, "");
  command.add_option("--author", options.coreml.author, "");
  command.add_option("--license", options.coreml.license, "");
}

}  // namespace

void add_export(CLI::App& app) {
  auto options = std::make_shared<ExportOptions>();
  CLI::App* command = app.add_subcommand("export", "Write a graph as a program of another system");
  add_paths(*command, *options);
  add_coreml_options(*command, *options);
  add_model_options(*command, *options);
  add_description(*command, *options);
  command->footer(
      "Example:\n  rlx save mlp.rlx --param weights.safetensors -o mlp.graph\n  rlx export --target coreml mlp.graph mlp.mlpackage\n"
      "  rlx export --target coreml all-MiniLM-L6-v2 MiniLM.mlpackage --size B=1\n"
      "  rlx export --target coreml model-Q4_K_M.gguf Model.mlpackage --context 2048 --precision f16\n"
      "  rlx export --target coreml model.gguf Model.mlpackage --chunk 512 --function any_length:R=1\n"
      "  rlx export --target web all-MiniLM-L6-v2 page && python3 -m http.server -d page");
  command->callback([options] { options->target == "web" ? export_for_web(*options) : export_for_coreml(*options); });
}

}  // namespace rlx::command
