// A package: a manifest, the model's message, and the file of weights.
#include "rlx/export.h"

#include <algorithm>
#include <array>
#include <set>

#include "backends/coreml/program.h"

namespace rlx {
namespace {

constexpr std::string_view manifest = R"({
  "fileFormatVersion": "1.0.0",
  "itemInfoEntries": {
    "5B5F6B1C-6A0E-4C58-9E0B-0C8A6E3E1D01": {
      "author": "com.apple.CoreML",
      "description": "CoreML Model Specification",
      "name": "model.mlmodel",
      "path": "com.apple.CoreML/model.mlmodel"
    },
    "5B5F6B1C-6A0E-4C58-9E0B-0C8A6E3E1D02": {
      "author": "com.apple.CoreML",
      "description": "CoreML Model Weights",
      "name": "weights",
      "path": "com.apple.CoreML/weights"
    }
  },
  "rootModelIdentifier": "5B5F6B1C-6A0E-4C58-9E0B-0C8A6E3E1D01"
}
)";

void check_sizes(const Graph& graph, const Bindings& sizes) {
  const std::map<std::string, std::int64_t> symbols = graph.symbols();
  for (const auto& [name, bound] : symbols) {
    const auto size = sizes.find(name);
    if (size == sizes.end())
      fail("coreml: the size of '{}' is open: a package has fixed shapes (give {} a size, 1..{})", name, name, bound);
    if (size->second < 1 || size->second > bound) fail("coreml: size {} of '{}' (allowed: 1..{})", size->second, name, bound);
  }
  for (const auto& [name, size] : sizes)
    if (!symbols.contains(name)) fail("coreml: the graph has no symbol '{}' to give the size {}", name, size);
}

void check_options(const Graph& graph, const CoreMlOptions& options) {
  constexpr std::array targets{0, 16, 17, 18, 26};
  if (std::ranges::find(targets, options.minimum_target) == targets.end())
    fail("coreml: a target of iOS {} (allowed: 16, 17, 18, 26)", options.minimum_target);
  if (options.precision != Precision::f32 && options.precision != Precision::f16)
    fail("coreml: products in {} (allowed: f32, f16)", name(options.precision));
  if (options.functions.empty()) check_sizes(graph, options.sizes);
  std::set<std::string> names;
  for (const CoreMlFunction& function : options.functions) {
    if (function.name.empty() || !names.insert(function.name).second)
      fail("coreml: function '{}' (allowed: names that differ)", function.name);
    Bindings sizes = function.sizes;
    sizes.insert(options.sizes.begin(), options.sizes.end());
    check_sizes(graph, sizes);
  }
}

}  // namespace

void export_coreml(const std::filesystem::path& out, const SavedGraph& saved, const CoreMlOptions& options) {
  if (std::filesystem::exists(out)) fail("{}: exists already (a package is written to a new folder)", out.string());
  check_options(saved.graph, options);
  const coreml::MadeProgram made = coreml::make_program(saved, options);
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
}

}  // namespace rlx
