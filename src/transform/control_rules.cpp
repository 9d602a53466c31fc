#include "transform/control_rules.h"

#include <algorithm>
#include <set>

#include "ir/graph_data.h"
#include "ir/rebuild.h"
#include "ir/region.h"
#include "transform/tangent.h"

namespace rlx {

ControlRule control_rule(const OpDef& op) {
  if (&op == &Op<Call>::def()) return differentiate_call;
  if (&op == &Op<Cond>::def()) return differentiate_cond;
  if (&op == &Op<While>::def()) return differentiate_while;
  if (&op == &Op<Scan>::def()) return differentiate_scan;
  return nullptr;
}

Values Reader::take(std::size_t count) {
  Values part(count);
  for (Value& v : part) v = next();
  return part;
}

Values Reader::spread(const std::vector<bool>& marks) {
  Values result;
  for (bool mark : marks) result.push_back(mark ? next() : Value());
  return result;
}

std::vector<bool> has_tangent(std::span<const Dual> duals) {
  std::vector<bool> marks;
  for (const Dual& dual : duals) marks.push_back(bool(dual.tangent));
  return marks;
}

Values chosen(std::span<const Value> values, const std::vector<bool>& marks) {
  Values result;
  for (std::size_t i = 0; i < values.size(); ++i)
    if (marks[i]) result.push_back(values[i]);
  return result;
}

std::vector<Type> chosen(std::span<const Type> types, const std::vector<bool>& marks) {
  std::vector<Type> result;
  for (std::size_t i = 0; i < types.size(); ++i)
    if (marks[i]) result.push_back(types[i]);
  return result;
}

std::vector<bool> varying_outputs(const Graph& region, const std::vector<bool>& active, PassMode mode) {
  std::vector<bool> varying;
  const std::vector<Type> types = input_types(region);
  std::vector<Dual> duals;
  trace_region("probe", nullptr, types, [&](const Values& x) {
    const Graph directions = trace_region("directions", &x[0].graph(), chosen(types, active), [](const Values& t) { return t; });
    Values tangents;
    for (const auto& [input, value] : directions.inputs()) tangents.push_back(value);
    duals = push_forward(x[0].graph(), region, zip_duals(x, Reader(tangents).spread(active)), mode);
    varying = has_tangent(duals);
    return Values{};
  });
  return varying;
}

std::vector<bool> stable_carry(const Graph& step, std::size_t carries, std::vector<bool> active, PassMode mode) {
  for (bool changed = true; changed;) {
    changed = false;
    const std::vector<bool> varying = varying_outputs(step, active, mode);
    for (std::size_t i = 0; i < carries; ++i)
      if (varying[i] && !active[i]) changed = active[i] = true;
  }
  return active;
}

std::vector<bool> DualLayout::active_in(std::size_t group) const {
  std::size_t first = 0;
  for (std::size_t g = 0; g < group; ++g) first += sizes[g];
  const auto begin = active.begin() + static_cast<std::ptrdiff_t>(first);
  return {begin, begin + static_cast<std::ptrdiff_t>(sizes[group])};
}

std::vector<Dual> DualLayout::read(const Values& in) const {
  Reader reader(in);
  std::vector<Dual> duals;
  for (std::size_t g = 0; g < sizes.size(); ++g) {
    const Values x = reader.take(sizes[g]), dx = reader.spread(active_in(g));
    for (const Dual& dual : zip_duals(x, dx)) duals.push_back(dual);
  }
  return duals;
}

Values with_active_zeros(GraphData& target, const Values& x, Values dx, const std::vector<bool>& active) {
  for (std::size_t i = 0; i < x.size(); ++i)
    if (active[i]) dx[i] = materialized(target, dx[i], x[i].type());
  return dx;
}

namespace {

/// Which results of a scan are needed, where `read` are read behind it: carries also where a needed result of the step reads them.
std::vector<bool> needed_results(const Scan& op, std::vector<bool> read) {
  for (bool found_more = true; found_more;) {
    found_more = false;
    std::vector<ValueId> wanted;
    for (std::size_t i = 0; i < read.size(); ++i)
      if (read[i]) wanted.push_back(op.step->outputs()[i].second.id());
    std::set<ValueId> reached(wanted.begin(), wanted.end());
    for (const std::int32_t id : needed_nodes(op.step->data(), wanted))
      for (const ValueId operand : op.step->node(id).operands) reached.insert(operand);
    for (std::size_t k = 0; k < static_cast<std::size_t>(op.carries); ++k)
      if (!read[k] && reached.contains(op.step->inputs()[k].second.id())) read[k] = found_more = true;
  }
  return read;
}

/// The scan without the other results; these are null.
Values smaller_scan(const Scan& op, const Values& operands, const std::vector<bool>& needed) {
  const auto carries = static_cast<std::size_t>(op.carries);
  const auto stays = [&](std::size_t input) { return input >= carries || needed[input]; };
  std::vector<Type> types;
  Values kept;
  for (std::size_t i = 0; i < operands.size(); ++i)
    if (stays(i)) kept.push_back(operands[i]), types.push_back(op.step->inputs()[i].first.type);
  Scan smaller = op;
  smaller.carries = std::count(needed.begin(), needed.begin() + op.carries, true);
  smaller.step = closed_region(op.step->name(), types, [&](const Values& in) {
    Reader reader(in);
    Values all;
    for (std::size_t i = 0; i < operands.size(); ++i)
      all.push_back(stays(i) ? reader.next() : zeros(in[0].graph(), op.step->inputs()[i].first.type));
    return chosen(inline_graph(in[0].graph(), *op.step, all), needed);
  });
  return Reader(make_scan(smaller, kept)).spread(needed);
}

}  // namespace

Graph without_unused_results(const Graph& graph) {
  Rebuilder out(graph);
  std::set<ValueId> read;
  for (const ValueId output : output_ids(graph)) read.insert(output);
  for (const std::int32_t id : out.needed()) read.insert(graph.node(id).operands.begin(), graph.node(id).operands.end());
  for (const std::int32_t id : out.needed()) {
    const Node& node = graph.node(id);
    if (node.op != &Op<Scan>::def()) {
      out.copy(id);
      continue;
    }
    std::vector<bool> used;
    for (std::size_t r = 0; r < node.results.size(); ++r) used.push_back(read.contains({id, static_cast<std::int32_t>(r)}));
    const Scan op = Op<Scan>::from(node.attrs);
    const std::vector<bool> needed = needed_results(op, used);
    if (std::ranges::find(needed, false) == needed.end()) out.copy(id);
    else out.replace(id, smaller_scan(op, out.operands(id), needed));
  }
  return out.finish();
}

}  // namespace rlx
