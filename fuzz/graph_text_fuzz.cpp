#include <algorithm>
#include <cstdint>
#include <string_view>

#include "ir/op.h"
#include "ir/verifier.h"
#include "rlx/text.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace {

/// What was read must be a sound graph, and its text must give the same graph and the same text.
bool round_trips(const rlx::Graph& graph) {
  rlx::verify(graph, "parse_graph");
  const std::string text = rlx::to_text(graph);
  const rlx::Graph back = rlx::parse_graph(text, "printed");
  return rlx::structurally_equal(graph, back) && rlx::to_text(back) == text;
}

rlx::Graph graph_of(const rlx::OpDef& op, const rlx::Sample& sample) {
  rlx::Graph graph;
  rlx::Values operands;
  for (const auto& operand : sample.operands)
    operands.push_back(graph.input("x" + std::to_string(operands.size()), operand.type.shape, operand.type.dtype));
  rlx::Attrs attrs = sample.attrs;
  if (attrs.empty())
    for (const rlx::Field& field : op.fields) attrs.push_back(field.initial);
  const rlx::Values results = operands.empty() ? rlx::apply(graph.data(), op, attrs) : rlx::apply(op, attrs, operands);
  graph.output("y", results[0]);
  return graph;
}

/// One text for each sample of each op: names and attributes that mutation alone would not find.
const std::vector<std::string>& sample_texts() {
  static const std::vector<std::string> texts = [] {
    std::vector<std::string> out;
    for (const auto& [name, op] : rlx::op_registry())
      for (const rlx::Sample& sample : op->samples()) out.push_back(rlx::to_text(graph_of(*op, sample)));
    return out;
  }();
  return texts;
}

}  // namespace

/// The usual mutations, now and then on a sample instead of the given input.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size, unsigned seed) {
  if (seed % 32 == 0) {
    const std::string& text = sample_texts()[seed / 32 % sample_texts().size()];
    if (text.size() <= max_size) size = static_cast<std::size_t>(std::copy(text.begin(), text.end(), data) - data);
  }
  return LLVMFuzzerMutate(data, size, max_size);
}

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
