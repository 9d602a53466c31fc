#pragma once
#include <cstdint>
#include <map>
#include <string>

#include "rlx/io.h"
#include "rlx/session.h"

namespace rlx {

/// An array for every input, parameter and state that `values` lacks: floats are uniform in -1..1 from a fixed seed, integers and bools 1.
/// A symbol has the size that `sizes` gives, else the one that follows from `values`, else its bound or `default_size`, the smaller.
/// Throws Error for a size outside the symbol's range, of a symbol that the graph lacks, or other than the given values say.
void fill_missing(const Graph& graph, const std::map<std::string, std::int64_t>& sizes, std::int64_t default_size, NamedArrays& values);

/// Binds parameters and states of a compiled graph and gives what its runs take. Names that the graph lacks are kept as inputs, so that
/// running reports them with the names that are near. Throws Error that lists the parameters without a value.
std::map<std::string, Feed> bind_values(Executable& executable, const Graph& graph, const NamedArrays& values);

}  // namespace rlx
