#include "formats/graph_file.h"

#include <charconv>

#include "base/names.h"
#include "ir/text/text_arrays.h"
#include "ops/control/host_call.h"

namespace rlx {
namespace {

constexpr std::string_view format_name = "rlx-graph";
constexpr std::int64_t most_kept_in_text = 64;  // elements

bool fits(const Array& array, const Type& type) {
  if (array.dtype() != type.dtype || array.rank() != type.rank()) return false;
  for (std::size_t axis = 0; axis < type.shape.size(); ++axis)
    if (type.shape[axis].is_static() && type.shape[axis].value() != array.shape()[axis]) return false;
  return true;
}

/// Throws unless every weight is a parameter or state with the type of the array.
void check_weights(const std::string& file, const SavedGraph& saved) {
  std::map<std::string_view, const Type*> wanted;
  for (const auto& [input, value] : saved.graph.inputs())
    if (input.kind != InputKind::input) wanted.emplace(input.name, &input.type);
  std::vector<std::string_view> names;
  for (const auto& [name, type] : wanted) names.push_back(name);
  for (const auto& [name, array] : saved.weights) {
    const auto it = wanted.find(name);
    if (it == wanted.end())
      fail("{}: array {} is no parameter or state of graph {}{}", file, quote_name(name), quote_name(saved.graph.name()),
           near_hint(name, names));
    if (!fits(array, *it->second))
      fail("{}: array {} is {}, the graph declares {}", file, quote_name(name), type_text(array.dtype(), array.shape()),
           it->second->to_string());
  }
}

const std::string& metadata_field(const SafetensorsFile& file, const std::string& field) {
  const auto it = file.metadata().find(field);
  if (it == file.metadata().end()) fail("{}: not a graph file: metadata '{}' is missing", file.name(), field);
  return it->second;
}

void check_format(const SafetensorsFile& file) {
  const std::string& format = metadata_field(file, "format");
  if (format != format_name)
    fail("{}: not a graph file: metadata 'format' is {} (needed: '{}')", file.name(), quote_name(format), format_name);
  const std::string& text = metadata_field(file, "version");
  int version = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), version);
  if (error != std::errc() || end != text.data() + text.size() || version < 1)
    fail("{}: metadata 'version' is {} (allowed: 1..{})", file.name(), quote_name(text), graph_file_version);
  if (version > graph_file_version)
    fail("{}: version {} is newer than this build reads (allowed: 1..{})", file.name(), version, graph_file_version);
}

}  // namespace

void save_graph(const std::filesystem::path& path, const SavedGraph& saved) {
  check_calls_no_host(saved.graph, path.string());
  check_weights(path.string(), saved);
  std::vector<TensorView> tensors;
  for (const auto& [name, array] : saved.weights) {
    if (name.starts_with('#')) fail("{}: the name {} starts with '#', which is kept for constants", path.string(), quote_name(name));
    tensors.push_back(view_of(name, array));
  }
  int constants = 0;
  const auto keep = [&](const Array& array) -> std::optional<std::string> {
    if (array.size() <= most_kept_in_text || safetensors_dtype_name(array.dtype()).empty()) return std::nullopt;
    return tensors.emplace_back(view_of("#" + std::to_string(constants++), array)).name;
  };
  const std::string text = to_text(saved.graph, keep);
  write_safetensors(path, tensors,
                    {{"format", std::string(format_name)}, {"version", std::to_string(graph_file_version)}, {"graph", text}});
}

SavedGraph load_graph(const std::filesystem::path& path) { return load_graph(SafetensorsFile::open(path)); }

bool is_graph_file(const SafetensorsFile& file) {
  const auto format = file.metadata().find("format");
  return format != file.metadata().end() && format->second == format_name;
}

SavedGraph load_graph(const SafetensorsFile& file) {
  check_format(file);
  const auto find = [&](const std::string& name) {
    if (!name.starts_with('#')) fail("array {} is no constant: its name must start with '#'", quote_name(name));
    return file.array(name);
  };
  SavedGraph saved{parse_graph(metadata_field(file, "graph"), file.name() + ":graph", find), {}};
  for (const TensorView& tensor : file.tensors())
    if (!tensor.name.starts_with('#')) saved.weights.emplace(tensor.name, file.array(tensor.name));
  check_weights(file.name(), saved);
  return saved;
}

}  // namespace rlx
