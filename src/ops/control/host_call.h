#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "rlx/host_call.h"

namespace rlx {

struct HostEntry {
  HostFunction function;
  std::vector<Type> results;
};

/// Why no device but the CPU computes `host_call`.
inline constexpr std::string_view host_call_reason = "it calls a function of the host";

/// The number by which a node `host_call` knows it from now on.
std::int64_t keep_host_function(HostEntry entry);

/// Throws Error, which begins with `what`, for a graph that calls functions of this process: another one would take its own by their
/// numbers.
void check_calls_no_host(const Graph& graph, std::string_view what);

}  // namespace rlx
