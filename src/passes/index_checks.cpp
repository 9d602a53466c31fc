#include "passes/index_checks.h"

#include <algorithm>
#include <numeric>
#include <set>

#include <fmt/ranges.h>

#include "ir/graph_data.h"
#include "ir/op.h"
#include "ir/rebuild.h"
#include "ir/sources.h"
#include "ir/symbols.h"
#include "passes/expand.h"
#include "rlx/ops.h"

namespace rlx {
namespace {

/// An integer operand that an op reads places from, and where on its axes.
struct Read {
  int operand = 0;
  std::vector<Index> at;
  Dim size;
};

/// The reads whose result the op clamps, and does nothing else with.
std::vector<Read> clamped_reads(const Graph& graph, const Node& node) {
  std::vector<Read> reads;
  std::set<int> open;
  const ReadIndex note = [&](int operand, const std::vector<Index>& at, std::optional<Dim> size) {
    if (size) reads.push_back({operand, at, *size});
    else open.insert(operand);
    return Index(0);
  };
  std::vector<Type> types;
  for (ValueId operand : node.operands) types.push_back(graph.type(operand));
  std::vector<Index> at;
  for (const Dim& size : node.results[0].shape) at.push_back(Index::variable(static_cast<int>(at.size()), size));
  node.op->address(node.attrs, types, node.results[0], at, note);
  std::erase_if(reads, [&](const Read& read) { return open.count(read.operand) > 0; });
  return reads;
}

class Checker {
 public:
  explicit Checker(const Graph& graph) : graph_(graph), result_{Graph(graph.name()), {}} {
    for (const auto& [input, value] : graph.inputs()) {
      if (input.kind != InputKind::input || !is_integer(input.type.dtype)) continue;
      copies_.emplace(value.id(), result_.graph.input(input.name, input.type.shape, input.type.dtype));
      inputs_[value.id()] = {input.name};
    }
    known_ = result_.graph.symbols();
  }

  IndexChecks run() {
    for (std::int32_t id = 0; id < static_cast<std::int32_t>(graph_.size()); ++id) {
      const Node& node = graph_.node(id);
      if (node.op->address) add_checks(node);
      if (!is_input(node) && !has_regions(node)) copy(id);
    }
    return std::move(result_);
  }

 private:
  /// Copies a node whose operands are copied, and whose sizes follow from the integer inputs.
  void copy(std::int32_t id) {
    const Node& node = graph_.node(id);
    std::map<std::string, std::int64_t> symbols;
    for (const Type& type : node.results)
      for (const Dim& size : type.shape) size.collect_symbols(symbols);
    if (!std::ranges::all_of(symbols, [&](const auto& symbol) { return follows_from(known_, symbol.first); })) return;
    Values operands;
    std::set<std::string> inputs;
    for (ValueId operand : node.operands) {
      const auto copied = copies_.find(operand);
      if (copied == copies_.end()) return;
      operands.push_back(copied->second);
      inputs.insert(inputs_[operand].begin(), inputs_[operand].end());
    }
    const Values results = emit(result_.graph.data(), *node.op, node.attrs, operands);
    for (std::size_t r = 0; r < results.size(); ++r) {
      const ValueId value{id, static_cast<std::int32_t>(r)};
      copies_.emplace(value, results[r]);
      inputs_[value] = inputs;
    }
  }

  void add_checks(const Node& node) {
    for (const Read& read : clamped_reads(graph_, node)) {
      const ValueId operand = node.operands[static_cast<std::size_t>(read.operand)];
      const auto copied = copies_.find(operand);
      if (copied == copies_.end() || inputs_[operand].empty()) continue;
      Value places = cast(copied->second, i64);
      for (std::size_t axis = 0; axis < read.at.size(); ++axis)
        if (const Index& at = read.at[axis]; at.is_constant())
          places = slice_axis(places, static_cast<std::int64_t>(axis), at.constant(), at.constant() + 1);
      if (places.type().size().lower() < 1) continue;
      Axes all;
      all.values.resize(places.shape().size());
      std::iota(all.values.begin(), all.values.end(), 0);
      const std::size_t i = result_.checks.size();
      result_.graph.output(fmt::format("least {}", i), reduce_min(places, all));
      result_.graph.output(fmt::format("largest {}", i), reduce_max(places, all));
      result_.checks.push_back({std::string(node.op->name), fmt::format("'{}'", fmt::join(inputs_[operand], "', '")), read.size});
    }
  }

  const Graph& graph_;
  IndexChecks result_;
  std::map<ValueId, Value> copies_;
  std::map<ValueId, std::set<std::string>> inputs_;  // of each copy, by their names
  std::map<std::string, std::int64_t> known_;        // symbols
};

}  // namespace

IndexChecks index_checks(const Graph& graph) {
  const Graph primitives = expand(graph, nothing_claimed);
  return Checker(primitives).run();
}

}  // namespace rlx
