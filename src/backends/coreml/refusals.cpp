#include "backends/coreml/refusals.h"

#include <algorithm>
#include <cstdlib>

#include "backends/coreml/made_program.h"
#include "ir/array_type.h"

namespace rlx::coreml {
namespace {

/// Zeros for all of them, in memory that is taken once and not touched.
NamedArrays parameters_of(const Graph& graph) {
  std::int64_t most = 1;
  for (const auto& [input, value] : graph.inputs())
    if (input.kind == InputKind::param) most = std::max(most, array_bytes(input.type.dtype, static_shape(input.type)));
  const std::shared_ptr<void> zeros(std::calloc(static_cast<std::size_t>(most), 1), std::free);
  if (!zeros) fail("coreml: no memory for {} bytes of one parameter", most);
  NamedArrays arrays;
  for (const auto& [input, value] : graph.inputs()) {
    if (input.kind != InputKind::param) continue;
    const auto bytes = static_cast<std::size_t>(array_bytes(input.type.dtype, static_shape(input.type)));
    const std::span<const std::byte> view(static_cast<const std::byte*>(zeros.get()), bytes);
    arrays.emplace(input.name, Array(input.type.dtype, static_shape(input.type), view, zeros));
  }
  return arrays;
}

}  // namespace

/// The message without what it is about: "coreml: WHAT: REASON (allowed: ...)".
std::set<std::string> refusals(const Graph& graph, const Bindings& sizes) {
  try {
    make_program({graph, parameters_of(graph)}, {.sizes = sizes, .computes_random_bits = true});
    return {};
  } catch (const Error& error) {
    std::string reason = error.what();
    for (int i = 0; i < 2; ++i)
      if (const std::size_t at = reason.find(": "); at != std::string::npos) reason.erase(0, at + 2);
    return {reason.substr(0, reason.find(" (allowed: "))};
  }
}

}  // namespace rlx::coreml
