#include "passes/places.h"

#include <algorithm>

#include "ir/guards.h"
#include "ops/scalar/scalar.h"

namespace rlx {
namespace {

std::vector<Type> operand_types(const Graph& graph, const Node& node) {
  std::vector<Type> types;
  for (ValueId id : node.operands) types.push_back(graph.type(id));
  return types;
}

/// How many expressions a place counts as: quotients and remainders are nested with each reshape of a transpose, and read twice in the
/// next.
std::size_t weight(const std::vector<Index>& at) {
  constexpr std::size_t divisions_of_one = 8;
  std::size_t divisions = 0;
  for (const Index& index : at) index.for_each_atom([&](const Atom& atom) { divisions += atom.numerator ? 1 : 0; });
  return 1 + divisions / divisions_of_one;
}

}  // namespace

Places::Reads Places::reads(ValueId v) const {
  std::map<ValueId, Reads> of_loop;
  for (const Place& place : at_[static_cast<std::size_t>(v.node)]) {
    Reads& reads = of_loop[place.loop];
    reads.places += weight(place.at);
    reads.repeats += place.steps / std::max(1.0, elements(v));
  }
  Reads most;
  for (const auto& [loop, reads] : of_loop) most = {std::max(most.places, reads.places), std::max(most.repeats, reads.repeats)};
  return most;
}

std::vector<Index> Places::own_index(ValueId v) const {
  std::vector<Index> at;
  for (const Dim& extent : graph_.type(v).shape) at.push_back(Index::variable(static_cast<int>(at.size()), extent));
  return at;
}

void Places::visit(std::int32_t id, std::optional<ValueId> loop) {
  const Node& node = graph_.node(id);
  const ValueId v{id, 0};
  const bool too_many = are_too_many(v);
  std::vector<Place> places = std::move(at_[static_cast<std::size_t>(id)]);
  at_[static_cast<std::size_t>(id)].clear();
  if (too_many) loop = v;  // it would be given to a kernel that is too long in any case
  if (loop) places = {{*loop, own_index(v), elements(v)}};
  const int first_variable = next_variable_;
  const bool once_for_many = node.op->name == "broadcast";  // in an outer loop, as far as one is left
  for (const Place& place : places) {
    next_variable_ = first_variable;  // one reduction has the same variables at all of its places
    pass(node, id, place, once_for_many);
  }
}

void Places::pass(const Node& node, std::int32_t id, const Place& place, bool once_for_many) {
  const Type& type = node.results[0];
  if (node.op->kind == OpKind::scalar) {
    for (ValueId operand : node.operands) add(operand, place);
  } else if (node.op->loop) {
    const auto fresh = [&](const Dim& extent) { return Index::variable(next_variable_++, extent); };
    const Loop loop = node.op->loop(node.attrs, operand_types(graph_, node), type, place.at, fresh);
    for (const auto& factor : loop.factors)
      for (const Source& source : factor)
        if (source.operand >= 0) {
          const ValueId operand = node.operands[static_cast<std::size_t>(source.operand)];
          add(operand, {{id, 0}, source.index, elements(operand)});
        }
  } else if (node.op->sources) {
    pass_sources(node, place, node.op->sources(node.attrs, operand_types(graph_, node), type, place.at), once_for_many);
  } else if (node.op->address) {
    const auto read = [&](int operand, const std::vector<Index>& where, const std::optional<Dim>& limit) {
      add(node.operands[static_cast<std::size_t>(operand)], {place.loop, where, 0});
      return Index::variable(next_variable_++, limit ? *limit : Dim(std::int64_t{1} << 40));
    };
    pass_sources(node, place, node.op->address(node.attrs, operand_types(graph_, node), type, place.at, read), false);
  } else {
    for (ValueId operand : node.operands) add(operand, {{id, 0}, own_index(operand), elements(operand)});
  }
}

void Places::pass_sources(const Node& node, const Place& place, const std::vector<Source>& sources, bool once_for_many) {
  for (const Source& source : sources) {
    if (source.operand < 0 || never_hold(source.guards)) continue;
    const ValueId operand = node.operands[static_cast<std::size_t>(source.operand)];
    const double share = once_for_many ? elements(operand) / std::max(1.0, static_cast<double>(node.results[0].size().upper())) : 1;
    add(operand, {place.loop, source.index, place.steps * share});
  }
}

void Places::add(ValueId v, Place place) {
  if (is_stored_(v)) return;
  auto& places = at_[static_cast<std::size_t>(v.node)];
  const auto known = std::ranges::find_if(places, [&](const Place& other) { return other.loop == place.loop && other.at == place.at; });
  if (known == places.end() && places.size() < most) places.push_back(std::move(place));
  else if (known != places.end()) known->steps = std::max(known->steps, place.steps);
}

std::vector<double> place_costs(const Graph& graph, const std::function<bool(ValueId)>& is_stored) {
  constexpr double load = 1;
  std::vector<double> costs(graph.size(), 0);
  for (std::int32_t id = 0; id < static_cast<std::int32_t>(graph.size()); ++id) {
    const Node& node = graph.node(id);
    const ValueId v{id, 0};
    if (is_stored(v) || node.op->loop) continue;
    double& cost = costs[static_cast<std::size_t>(id)];
    if (node.op->kind == OpKind::scalar) cost += work(static_cast<ScalarOp>(node.op->scalar));
    for (ValueId operand : node.operands) cost += is_stored(operand) ? load : costs[static_cast<std::size_t>(operand.node)];
    if (node.op->sources && node.operands.size() > 1) cost += static_cast<double>(node.operands.size() - 1);
  }
  return costs;
}

}  // namespace rlx
