#pragma once
#include <filesystem>
#include <map>
#include <string>

#include "rlx/array.h"
#include "rlx/graph.h"

// Arrays and graphs in files. A file is mapped and wholly checked before anything of it can be used; arrays share the mapping, so a file
// must not be cut short while they live. Files are written atomically: whole under their name, or not at all. Every function throws Error
// naming the file and the field that is wrong.

namespace rlx {

/// Arrays by the name of a tensor, a parameter, a state or an input.
using NamedArrays = std::map<std::string, Array>;
/// What a safetensors file says beside its tensors.
using Metadata = std::map<std::string, std::string>;

/// What a safetensors file holds.
struct TensorFile {
  NamedArrays arrays;
  Metadata metadata;
};

/// Reads a .safetensors file. An array shares the mapped file; it is copied only when its bytes are not aligned for its dtype.
TensorFile load_safetensors(const std::filesystem::path& path);

/// Writes a .safetensors file; the same arguments give the same bytes. Throws Error for a dtype that the format lacks (i4, u4, c128) and
/// for names and metadata that are not UTF-8.
void save_safetensors(const std::filesystem::path& path, const NamedArrays& arrays, const Metadata& metadata = {});

/// Reads an .npy file (versions 1.0, 2.0, 3.0) of booleans, integers, floats or complex numbers, those of the package ml_dtypes too
/// (bfloat16, float8_e4m3fn, float8_e5m2, int4, uint4). Little-endian row-major data stays mapped, but for 4 bits; other data is converted
/// into memory. Object arrays (pickles), structured dtypes and bytes after the data are refused.
Array load_npy(const std::filesystem::path& path);

/// Writes version 1.0, little-endian, row-major. numpy reads bf16, 8-bit floats and 4-bit integers (a byte each) by their own types once
/// ml_dtypes is imported; without it, `numpy.fromfile` reads the bytes behind the header.
void save_npy(const std::filesystem::path& path, const Array& array);

/// A graph with arrays for some or all of its parameters and states, by input name.
struct SavedGraph {
  Graph graph;
  NamedArrays weights;
};

/// The format version that `save_graph` writes; `load_graph` reads it and all before it.
inline constexpr int graph_file_version = 1;

/// Writes graph and weights to one safetensors file: the graph's text is metadata, large constants are tensors named "#0", "#1", ...
/// Throws Error for a weight that is no parameter or state of the graph or does not have its type, for a name that starts with '#', and
/// for a dtype that safetensors lacks.
void save_graph(const std::filesystem::path& path, const SavedGraph& saved);

/// Reads what `save_graph` wrote; `Executable::set_params` binds its weights. Throws Error for another kind of file, for a newer version,
/// and when text and arrays do not fit together.
SavedGraph load_graph(const std::filesystem::path& path);

}  // namespace rlx
