#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cases/cases.h"
#include "rlx/graph.h"
#include "rlx/session.h"

namespace rlx::bench {

/// An f32 array with the numbers of `fill`.
Array filled(std::vector<std::int64_t> shape, std::uint32_t seed);

/// A case that runs a compiled graph on these inputs and writes its one output, "out" of f32 and this shape, to memory that stays the
/// same from run to run.
Case program_case(const Session& session, const Graph& graph, const std::map<std::string, Array>& inputs, std::vector<std::int64_t> shape);

}  // namespace rlx::bench
