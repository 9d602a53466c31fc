#pragma once
#include <filesystem>
#include <map>
#include <string>

#include "formats/safetensors.h"
#include "rlx/graph.h"

namespace rlx {

/// A graph with arrays for some or all of its parameters and states, by input name.
struct SavedGraph {
  Graph graph;
  std::map<std::string, Array> weights;
};

/// The format version that `save_graph` writes; `load_graph` reads it and all before it.
inline constexpr int graph_file_version = 1;

/// Writes graph and weights to one safetensors file, atomically: the graph's text is metadata, large constants are tensors named "#0",
/// "#1", ... Throws Error for a weight that is no parameter or state of the graph or does not have its type, for a name that starts with
/// '#', and for a dtype that safetensors lacks (i4, u4, c128).
void save_graph(const std::filesystem::path& path, const SavedGraph& saved);

/// Reads what `save_graph` wrote; arrays share the mapped file. Throws Error for another kind of file, for a newer version, and when
/// text and arrays do not fit together.
SavedGraph load_graph(const std::filesystem::path& path);

/// The same for a file that was read already; after SafetensorsFile::parse its bytes must outlive the arrays.
SavedGraph load_graph(const SafetensorsFile& file);

/// Whether a file says of itself that it is a graph.
bool is_graph_file(const SafetensorsFile& file);

}  // namespace rlx
