#pragma once
#include <cstdint>
#include <vector>

#include "rlx/host_call.h"

namespace rlx {

struct HostEntry {
  HostFunction function;
  std::vector<Type> results;
};

/// The number by which a node `host_call` knows it from now on.
std::int64_t keep_host_function(HostEntry entry);

}  // namespace rlx
