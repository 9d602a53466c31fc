#pragma once
#include "formats/tensors/safetensors.h"
#include "rlx/io.h"

namespace rlx {

/// `load_graph` for a file that was read already; after SafetensorsFile::parse its bytes must outlive the arrays.
SavedGraph load_graph(const SafetensorsFile& file);

/// Whether a file says of itself that it is a graph.
bool is_graph_file(const SafetensorsFile& file);

}  // namespace rlx
