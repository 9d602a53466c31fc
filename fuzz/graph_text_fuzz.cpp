#include <cstdint>
#include <string_view>

#include "ir/verify.h"
#include "rlx/text.h"

namespace {

/// What was read must be a sound graph, and its text must give the same graph and the same text.
bool round_trips(const rlx::Graph& graph) {
  rlx::verify(graph, "parse_graph");
  const std::string text = rlx::to_text(graph);
  const rlx::Graph back = rlx::parse_graph(text, "printed");
  return rlx::structurally_equal(graph, back) && rlx::to_text(back) == text;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  rlx::Graph graph;
  try {
    graph = rlx::parse_graph({reinterpret_cast<const char*>(data), size}, "fuzz.rlx");
  } catch (const rlx::Error&) {
    return 0;  // a refusal is the right answer to most inputs
  }
  if (!round_trips(graph)) __builtin_trap();
  return 0;
}
