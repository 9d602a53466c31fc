#include "transform/control_rules.h"

#include "ir/graph_data.h"
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

}  // namespace rlx
