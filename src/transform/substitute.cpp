#include "transform/substitute.h"

#include <map>

#include "ir/op.h"
#include "ir/rebuild.h"
#include "ir/sources.h"
#include "ir/symbols.h"

namespace rlx {
namespace {

Dims with_symbol(Dims dims, std::string_view symbol, const Dim& value) {
  for (Dim& dim : dims) dim = rlx::with_symbol(dim, symbol, value);
  return dims;
}

Attrs with_symbol(Attrs attrs, std::string_view symbol, const Dim& value) {
  for (Attr& attr : attrs) {
    if (auto* dims = std::get_if<Dims>(&attr)) *dims = with_symbol(*dims, symbol, value);
    else if (auto* region = std::get_if<Region>(&attr); region && *region)
      *region = std::make_shared<const Graph>(rlx::with_symbol(**region, symbol, value));
  }
  return attrs;
}

}  // namespace

Dim with_symbol(const Dim& dim, std::string_view symbol, const Dim& value) {
  const Bindings known = value.is_static() ? Bindings{{std::string(symbol), value.value()}} : Bindings{};
  const auto now = [&](const Dim::Symbol& factor) -> Dim {
    if (factor.name == symbol) return value;
    if (const auto number = value_of_symbol(factor.name, known)) return *number;  // of its runs
    return Dim::symbol(factor.name, factor.bound);
  };
  Dim total = 0;
  for (const Dim::Term& term : dim.terms()) {
    Dim product = term.coefficient;
    for (const auto& factor : term.symbols) product *= now(*factor);
    total += product;
  }
  return total;
}

Graph with_symbol(const Graph& graph, std::string_view symbol, const Dim& value) {
  Graph result(graph.name());
  std::map<ValueId, Value> values;
  for (auto [input, old] : graph.inputs()) {
    input.type.shape = with_symbol(input.type.shape, symbol, value);
    values[old.id()] = make_input(result.data(), input);
  }
  for (std::int32_t id : needed_nodes(graph.data(), output_ids(graph))) {
    const Node& node = graph.node(id);
    Values operands;
    for (ValueId operand : node.operands) operands.push_back(values.at(operand));
    const Values results = emit(result.data(), *node.op, with_symbol(node.attrs, symbol, value), operands);
    for (std::size_t r = 0; r < results.size(); ++r) values[{id, static_cast<std::int32_t>(r)}] = results[r];
  }
  for (const auto& [name, output] : graph.outputs()) result.output(name, values.at(output.id()));
  return result;
}

}  // namespace rlx
