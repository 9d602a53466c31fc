// A package: a manifest, the model's message, and the file of weights.
#include "rlx/export.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>

#include <fmt/ranges.h>

#include "backends/coreml/made_program.h"
#include "quant/block_format.h"
#include "quant/block_parts.h"

namespace rlx {
namespace {

constexpr std::string_view manifest = R"({
  "fileFormatVersion": "1.0.0",
  "itemInfoEntries": {
    "5B5F6B1C-6A0E-4C58-9E0B-0C8A6E3E1D01": {"author": "com.apple.CoreML", "description": "CoreML Model Specification",
      "name": "model.mlmodel", "path": "com.apple.CoreML/model.mlmodel"},
    "5B5F6B1C-6A0E-4C58-9E0B-0C8A6E3E1D02": {"author": "com.apple.CoreML", "description": "CoreML Model Weights",
      "name": "weights", "path": "com.apple.CoreML/weights"}
  },
  "rootModelIdentifier": "5B5F6B1C-6A0E-4C58-9E0B-0C8A6E3E1D01"
}
)";

constexpr std::int64_t most_size = std::numeric_limits<std::int32_t>::max();

using Symbols = std::map<std::string, std::int64_t>;

void check_size(const Symbols& symbols, const std::string& name, std::int64_t size) {
  const auto symbol = symbols.find(name);
  if (symbol == symbols.end()) fail("coreml: the graph has no symbol '{}' to give the size {}", name, size);
  if (size < 1 || size > symbol->second) fail("coreml: size {} of '{}' (allowed: 1..{})", size, name, symbol->second);
}

/// Symbols without a size are open. Where some have choices, all open ones have.
void check_sizes(const Symbols& symbols, const Bindings& sizes, const CoreMlOptions& options) {
  for (const auto& [name, size] : sizes) check_size(symbols, name, size);
  for (const auto& [name, bound] : symbols) {
    if (sizes.contains(name) || options.choices.contains(name)) continue;
    if (bound > most_size) fail("coreml: the bound of '{}' is {} (allowed: below 2^31; or give {} a size)", name, bound, name);
    if (!options.choices.empty())
      fail("coreml: '{}' is open, and '{}' has choices (allowed: choices for both, or a size for {})", name, options.choices.begin()->first,
           name);
  }
}

void check_choices(const Symbols& symbols, const CoreMlOptions& options) {
  constexpr std::size_t most_choices = 128;  // of CoreML
  for (const auto& [name, choices] : options.choices) {
    const auto& [first, others] = *options.choices.begin();
    if (options.sizes.contains(name)) fail("coreml: '{}' has a size and choices (allowed: one of them)", name);
    if (choices.empty() || choices.size() > most_choices)
      fail("coreml: {} choices of '{}' (allowed: 1..{})", choices.size(), name, most_choices);
    if (choices.size() != others.size())
      fail("coreml: {} choices of '{}' and {} of '{}' (allowed: as many, as they belong together)", others.size(), first, choices.size(),
           name);
    for (const std::int64_t size : choices) check_size(symbols, name, size);
  }
}

bool has_parts(const std::string& type) {
  const BlockFormat* const format = find_block_format(type);
  return format && find_block_parts(format->name);
}

void check_block_types(const CoreMlOptions& options) {
  std::map<const BlockFormat*, std::string> given;  // names are the same in capital letters and in small ones
  for (const auto& [from, to] : options.block_types) {
    if (!from.empty() && !has_parts(from)) fail("coreml: weights in blocks of '{}' (allowed: types of blocks, such as IQ3_S)", from);
    const auto [known, is_new] = given.emplace(find_block_format(from), fmt::format("{}={}", from, to));
    if (!is_new) fail("coreml: weights in blocks as '{}' and as '{}={}' (allowed: one of them)", known->second, from, to);
    const BlockFormat* const format = find_block_format(to);
    if (!has_parts(to) && !(format && format->name == "F16"))
      fail("coreml: weights in blocks as '{}' (allowed: F16, and types of blocks, such as Q4_0)", to);
  }
  const bool asks = options.nested_scales || !options.block_types.empty();
  if (asks && options.minimum_target != 0 && options.minimum_target < 18)
    fail("coreml: forms of blocks for iOS {}, which has none (allowed: 18, 26)", options.minimum_target);
}

void check_options(const Graph& graph, const CoreMlOptions& options) {
  constexpr std::array targets{0, 16, 17, 18, 26};
  if (std::ranges::find(targets, options.minimum_target) == targets.end())
    fail("coreml: a target of iOS {} (allowed: 16, 17, 18, 26)", options.minimum_target);
  if (options.precision == Precision::bf16) fail("coreml: products in bf16 (allowed: f32, f16, int8)");
  if (options.calibration && options.precision != Precision::int8)
    fail("coreml: a calibration beside products in {} (allowed: int8)", name(options.precision));
  check_block_types(options);
  const Symbols symbols = graph.symbols();
  check_choices(symbols, options);
  if (options.functions.empty()) check_sizes(symbols, options.sizes, options);
  std::set<std::string> names;
  for (const CoreMlFunction& function : options.functions) {
    if (function.name.empty() || !names.insert(function.name).second)
      fail("coreml: function '{}' (allowed: names that differ)", function.name);
    Bindings sizes = function.sizes;
    sizes.insert(options.sizes.begin(), options.sizes.end());
    check_sizes(symbols, sizes, options);
  }
}

/// What is asked of weights that the graph does not have.
void check_weights(const coreml::ProgramParts& parts) {
  std::set<std::string> types;
  bool has_levels = false;
  const auto& wanted = parts.block_types;
  for (const auto& [key, weight] : parts.stored_weights) {
    if (!find_block_parts(weight->type)) continue;
    types.insert(weight->type);
    const auto own = wanted.find(weight->type), to = own != wanted.end() ? own : wanted.find("");
    const BlockParts* const stored = find_block_parts(to != wanted.end() ? to->second : weight->type);
    has_levels = has_levels || (stored && stored->scale_levels.unit);
  }
  const std::string seen = types.empty() ? "no weights in blocks" : fmt::format("weights in blocks of {}", fmt::join(types, ", "));
  for (const auto& [from, to] : wanted) {
    const auto is_taken = [&](const std::string& type) { return from.empty() ? !wanted.contains(type) : type == from; };
    if (std::ranges::none_of(types, is_taken))
      fail("coreml: {} as {}: the graph has {}", from.empty() ? "weights of other types" : "weights of " + from, to, seen);
  }
  if (parts.nests_scales && !has_levels) fail("coreml: nested scales, which no type has that is stored: the graph has {}", seen);
}

double relative(double error_squares, double squares) { return squares > 0 ? std::sqrt(error_squares / squares) : 0; }

/// Of what is written.
CoreMlReport report_of(const coreml::ProgramParts& parts) {
  CoreMlReport report;
  for (const auto& [reason, ops] : parts.kept_f32) report.kept_f32.push_back({std::string(reason), ops});
  for (const auto& [key, stored] : parts.stored_weights)
    report.weights.push_back(
        {stored->name, stored->type, stored->form, stored->values, stored->bits, relative(stored->error_squares, stored->squares)});
  std::ranges::sort(report.weights, {}, &CoreMlReport::Stored::name);
  return report;
}

}  // namespace

CoreMlReport export_coreml(const std::filesystem::path& out, const SavedGraph& saved, const CoreMlOptions& options) {
  if (std::filesystem::exists(out)) fail("{}: exists already (a package is written to a new folder)", out.string());
  check_options(saved.graph, options);
  const coreml::MadeProgram made = coreml::make_program(saved, options);
  check_weights(made.parts);
  constexpr std::size_t most_bytes = std::size_t{1} << 31;  // of a message of Protocol Buffers
  if (made.model.bytes().size() >= most_bytes)
    fail("coreml: the program has {} bytes without its weights (allowed: below {})", made.model.bytes().size(), most_bytes);
  const MadeFolder package(out), data(out / "Data"), files(out / "Data" / "com.apple.CoreML"),
      weights(out / "Data" / "com.apple.CoreML" / "weights");
  std::vector<FileWriter> writers;
  writers.emplace_back(out / "Data" / "com.apple.CoreML" / "weights" / "weight.bin");
  made.parts.weights.write(writers.back(), [&](std::uint64_t bytes) {
    if (options.progress) options.progress(bytes, made.parts.weights.bytes());
  });
  writers.emplace_back(out / "Data" / "com.apple.CoreML" / "model.mlmodel");
  writers.back().write(made.model.bytes());
  writers.emplace_back(out / "Manifest.json");
  writers.back().write(manifest);
  FileWriter::commit_all(writers);
  return report_of(made.parts);
}

}  // namespace rlx
