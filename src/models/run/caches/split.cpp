#include "models/run/caches/split.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "ir/graph_data.h"
#include "ir/rebuild.h"
#include "ir/sources.h"

namespace rlx {
namespace {

class Splitter {
 public:
  Splitter(const Graph& graph, std::size_t parts, const PartOf& part_of) : graph_(graph), parts_(parts), crossing_(parts) {
    for (std::int32_t id = 0; id < static_cast<std::int32_t>(graph.size()); ++id) {
      const Node& node = graph.node(id);
      std::optional<std::size_t> part = is_input(node) ? part_of(input_from(node.attrs)) : std::nullopt;
      for (const ValueId operand : node.operands) part = std::max(part, part_[static_cast<std::size_t>(operand.node)]);
      part_.push_back(part);
    }
  }

  /// Last first: what a part reads of those before is known once it is built.
  std::vector<Graph> run() {
    std::vector<Graph> graphs(parts_);
    for (std::size_t part = parts_; part-- > 0;) graphs[part] = built(part);
    return graphs;
  }

 private:
  std::optional<std::size_t> part_of(ValueId id) const { return part_[static_cast<std::size_t>(id.node)]; }
  bool crosses(ValueId id, std::size_t to) const { return part_of(id) && *part_of(id) < to && !is_input(graph_.node(id.node)); }
  static std::string crossing_name(ValueId id) { return "crossing." + std::to_string(id.node) + "." + std::to_string(id.result); }

  std::vector<std::pair<std::string, ValueId>> outputs_of(std::size_t part) const {
    std::vector<std::pair<std::string, ValueId>> outputs;
    for (const auto& [name, value] : graph_.outputs())
      if (part_of(value.id()).value_or(parts_ - 1) == part) outputs.emplace_back(name, value.id());
    for (const ValueId id : crossing_[part]) outputs.emplace_back(crossing_name(id), id);
    return outputs;
  }

  std::vector<std::int32_t> nodes_of(std::size_t part, const std::vector<std::pair<std::string, ValueId>>& outputs) const {
    std::vector<ValueId> wanted, stops;
    for (const auto& [name, id] : outputs) wanted.push_back(id);
    for (std::int32_t id = 0; id < static_cast<std::int32_t>(graph_.size()); ++id)
      for (std::int32_t result = 0; result < std::ssize(graph_.node(id).results); ++result)
        if (crosses({id, result}, part)) stops.push_back({id, result});
    return needed_nodes(graph_.data(), wanted, stops);
  }

  void add_input(Graph& built, const Input& input, ValueId id, std::size_t part) {
    if (input.kind == InputKind::state && part_of(id) != part)
      fail("graph '{}': state '{}' is read behind the part that keeps it (allowed: layers that keep their own)", graph_.name(), input.name);
    values_[id] = make_input(built.data(), input);
  }

  Graph built(std::size_t part) {
    const auto outputs = outputs_of(part);
    const std::vector<std::int32_t> nodes = nodes_of(part, outputs);
    std::set<ValueId> read;
    for (const auto& [name, id] : outputs) read.insert(id);
    for (const std::int32_t id : nodes) read.insert(graph_.node(id).operands.begin(), graph_.node(id).operands.end());
    Graph built(graph_.name());
    values_.clear();
    for (const auto& [input, value] : graph_.inputs())
      if (read.contains(value.id())) add_input(built, input, value.id(), part);
    for (const ValueId id : read)
      if (crosses(id, part)) {
        crossing_[*part_of(id)].insert(id);
        values_[id] = make_input(built.data(), {crossing_name(id), InputKind::input, graph_.type(id)});
      }
    for (const std::int32_t id : nodes) copy(built, id);
    for (const auto& [name, id] : outputs) built.output(name, values_.at(id));
    return built;
  }

  void copy(Graph& built, std::int32_t id) {
    const Node& node = graph_.node(id);
    Values operands;
    for (const ValueId operand : node.operands) operands.push_back(values_.at(operand));
    const Values results = emit(built.data(), *node.op, node.attrs, operands);
    for (std::size_t r = 0; r < results.size(); ++r) values_[{id, static_cast<std::int32_t>(r)}] = results[r];
  }

  const Graph& graph_;
  std::size_t parts_;
  std::vector<std::optional<std::size_t>> part_;  // by node
  std::vector<std::set<ValueId>> crossing_;       // by the part that computes them
  std::map<ValueId, Value> values_;               // of the part that is being built
};

}  // namespace

std::vector<Graph> split_graph(const Graph& graph, std::size_t parts, const PartOf& part_of) {
  return Splitter(graph, parts, part_of).run();
}

}  // namespace rlx
