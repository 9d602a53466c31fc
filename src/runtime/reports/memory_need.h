#pragma once
#include <cstdint>

#include "rlx/graph.h"

namespace rlx {

/// What a program takes of its device's memory once it has run, at the bounds of its symbols.
struct MemoryNeed {
  std::int64_t parameters = 0, states = 0;
  std::int64_t scratch = 0;  // the arena of one run

  std::int64_t all() const { return parameters + states + scratch; }
};

/// `arena`: Executable::arena_bytes.
MemoryNeed memory_need(const Graph& graph, std::int64_t arena);

}  // namespace rlx
