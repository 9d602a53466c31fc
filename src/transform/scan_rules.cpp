// Derivatives of scan. Forward mode: one scan that carries tangents along. Reverse mode: the forward scan also stacks what the
// derivative of its step needs (residuals); the backward scan reads them from the last to the first.
#include <algorithm>
#include <set>

#include "ir/graph_data.h"
#include "ir/rebuild.h"
#include "ir/region.h"
#include "transform/control_rules.h"
#include "transform/pull_back.h"
#include "transform/sums_behind.h"
#include "transform/tangent.h"
#include "transform/transpose.h"

namespace rlx {
namespace {

void append(Values& to, const Values& more) { to.insert(to.end(), more.begin(), more.end()); }

DualLayout layout_of(const Scan& op, const std::vector<Dual>& operands, PassMode mode) {
  const auto carries = static_cast<std::size_t>(op.carries), scanned = static_cast<std::size_t>(op.scanned);
  return {{carries, scanned, operands.size() - carries - scanned}, stable_carry(*op.step, carries, has_tangent(operands), mode)};
}

/// Marks of the results: active carries, then results of the step that vary.
std::vector<bool> result_marks(const Scan& op, const DualLayout& layout, PassMode mode) {
  std::vector<bool> marks = varying_outputs(*op.step, layout.active, mode);
  for (std::size_t i = 0; i < layout.sizes[0]; ++i) marks[i] = layout.active[i];
  return marks;
}

std::size_t count(const std::vector<bool>& marks) { return static_cast<std::size_t>(std::count(marks.begin(), marks.end(), true)); }

std::vector<Dual> forward_scan(GraphData& target, const Scan& op, const std::vector<Dual>& operands) {
  const DualLayout layout = layout_of(op, operands, PassMode::forward);
  const std::vector<bool> marks = result_marks(op, layout, PassMode::forward);
  const DualLayout results_layout{{layout.sizes[0], marks.size() - layout.sizes[0]}, marks};
  const Values x = primals_of(operands), dx = with_active_zeros(target, x, tangents_of(operands), layout.active);
  const std::vector<Type> own = input_types(*op.step);
  Scan loop = op;
  loop.step = closed_region("step", layout.interleave(own, own), [&](const Values& in) {
    const std::vector<Dual> next = push_forward(in[0].graph(), *op.step, layout.read(in), PassMode::forward);
    const Values y = primals_of(next);
    return results_layout.interleave(y, with_active_zeros(in[0].graph(), y, tangents_of(next), marks));
  });
  loop.carries += static_cast<std::int64_t>(count(layout.active_in(0)));
  loop.scanned += static_cast<std::int64_t>(count(layout.active_in(1)));
  return results_layout.read(make_scan(loop, layout.interleave(x, dx)));
}

/// Values of a step that depend on its constants alone: the backward pass computes them once more instead of keeping one per slice.
std::set<ValueId> loop_invariants(const Graph& step, std::size_t varying_inputs) {
  std::set<ValueId> varying, invariant;
  for (std::size_t i = 0; i < step.inputs().size(); ++i) (i < varying_inputs ? varying : invariant).insert(step.inputs()[i].second.id());
  for (std::int32_t id = 0; id < static_cast<std::int32_t>(step.size()); ++id) {
    const Node& node = step.node(id);
    const bool varies = std::any_of(node.operands.begin(), node.operands.end(), [&](ValueId v) { return varying.contains(v); });
    for (std::int32_t r = 0; r < static_cast<std::int32_t>(node.results.size()); ++r)
      if (!varying.contains({id, r})) (varies ? varying : invariant).insert({id, r});
  }
  return invariant;
}

/// The forward and the linear half of a step.
struct Halves {
  Region primal;  // carry, scanned, constants -> next carry, y..., saved residuals
  Region linear;  // tangents of the carry; of scanned, then saved residuals; of constants, then the constants
  std::size_t saved = 0;
};

/// Values that depend on the last inputs of `step` only, computed from `constants` in their place.
Values recompute(GraphData& target, const Graph& step, const Values& wanted, const Values& constants) {
  std::map<ValueId, Value> values;
  const std::size_t first = step.inputs().size() - constants.size();
  for (std::size_t i = 0; i < constants.size(); ++i) values[step.inputs()[first + i].second.id()] = constants[i];
  std::vector<ValueId> ids;
  for (Value v : wanted) ids.push_back(v.id());
  for (std::int32_t id : needed_nodes(step.data(), ids)) {
    Values operands;
    for (ValueId operand : step.node(id).operands) operands.push_back(values.at(operand));
    const Values results = emit(target, *step.node(id).op, step.node(id).attrs, operands);
    for (std::size_t r = 0; r < results.size(); ++r) values[{id, static_cast<std::int32_t>(r)}] = results[r];
  }
  Values results;
  for (ValueId id : ids) results.push_back(values.at(id));
  return results;
}

void append_types(std::vector<Type>& to, const std::vector<Type>& more) { to.insert(to.end(), more.begin(), more.end()); }

/// The linear half as a region of its own, its residuals being inputs.
Region close_linear(const Graph& primal, const Graph& linear, const DualLayout& layout, const Values& saved, const Values& invariant) {
  const std::vector<Type> own = input_types(primal), tangents = chosen(own, layout.active);
  const auto early = static_cast<std::ptrdiff_t>(count(layout.active_in(0)) + count(layout.active_in(1)));
  std::vector<Type> types(tangents.begin(), tangents.begin() + early);
  append_types(types, types_of(saved));
  append_types(types, {tangents.begin() + early, tangents.end()});
  append_types(types, {own.end() - static_cast<std::ptrdiff_t>(layout.sizes[2]), own.end()});
  return closed_region("linear_step", types, [&](const Values& in) {
    Reader reader(in);
    Values operands = reader.take(static_cast<std::size_t>(early));
    const Values kept = reader.take(saved.size());
    append(operands, reader.take(tangents.size() - static_cast<std::size_t>(early)));
    const Values again = recompute(in[0].graph(), primal, invariant, reader.take(layout.sizes[2]));
    for (Value v : linear.captures()) {
      const auto at = std::find(saved.begin(), saved.end(), v) - saved.begin();
      const auto other = std::find(invariant.begin(), invariant.end(), v) - invariant.begin();
      operands.push_back(at < std::ssize(saved) ? kept[static_cast<std::size_t>(at)] : again[static_cast<std::size_t>(other)]);
    }
    return inline_graph(in[0].graph(), linear, operands);
  });
}

Halves split_step(const Scan& op, const DualLayout& layout, const std::vector<bool>& marks) {
  Graph primal("step");
  Values x;
  for (const auto& [input, value] : op.step->inputs()) x.push_back(primal.add_input(input));
  Graph linear("linear_step", primal.data());
  const Values tangents = tangent_inputs(linear, chosen(types_of(x), layout.active));
  const std::vector<Dual> next =
      push_forward(primal.data(), *op.step, zip_duals(x, Reader(tangents).spread(layout.active)), PassMode::reverse);
  for (std::size_t i = 0; i < next.size(); ++i)
    if (marks[i]) linear.output("out" + std::to_string(i), materialized(linear.data(), next[i].tangent, next[i].primal.type()));
  const std::set<ValueId> invariants = loop_invariants(primal, layout.sizes[0] + layout.sizes[1]);
  Values saved, invariant, results = primals_of(next);
  for (Value v : linear.captures()) (invariants.contains(v.id()) ? invariant : saved).push_back(v);
  append(results, saved);
  for (std::size_t i = 0; i < results.size(); ++i) primal.output("out" + std::to_string(i), results[i]);
  return {std::make_shared<const Graph>(dead_code_eliminated(primal)), close_linear(primal, linear, layout, saved, invariant),
          saved.size()};
}

std::vector<Dual> reverse_scan(GraphData& target, const Scan& op, const std::vector<Dual>& operands) {
  const DualLayout layout = layout_of(op, operands, PassMode::reverse);
  const std::vector<bool> marks = result_marks(op, layout, PassMode::reverse);
  if (count(marks) == 0) return zip_duals(make_scan(op, primals_of(operands)), Values(marks.size()));
  const Values x = primals_of(operands), dx = with_active_zeros(target, x, tangents_of(operands), layout.active);
  const Halves halves = split_step(op, layout, marks);
  Scan forward = op, linear = op;
  forward.step = halves.primal;
  linear.step = halves.linear;
  const Values results = make_scan(forward, x);
  const Values saved(results.end() - static_cast<std::ptrdiff_t>(halves.saved), results.end());
  linear.carries = static_cast<std::int64_t>(count(layout.active_in(0)));
  linear.scanned = static_cast<std::int64_t>(count(layout.active_in(1)) + halves.saved);
  const Values tangents = chosen(dx, layout.active);
  const auto early = static_cast<std::ptrdiff_t>(count(layout.active_in(0)) + count(layout.active_in(1)));
  Values all(tangents.begin(), tangents.begin() + early);
  append(all, saved);
  append(all, {tangents.begin() + early, tangents.end()});
  append(all, {x.end() - static_cast<std::ptrdiff_t>(layout.sizes[2]), x.end()});
  const Values dy = make_scan(linear, all);
  return zip_duals({results.begin(), results.begin() + std::ssize(marks)}, Reader(dy).spread(marks));
}

/// What the backward scan of a linear scan does: it carries the cotangents of the carry and of linear constants.
struct BackwardStep {
  const Scan& op;
  const std::vector<bool>& linear;  // by operand
  std::vector<bool> of(std::size_t first, std::size_t size) const {
    return {linear.begin() + static_cast<std::ptrdiff_t>(first), linear.begin() + static_cast<std::ptrdiff_t>(first + size)};
  }
  std::size_t carries() const { return static_cast<std::size_t>(op.carries); }
  std::size_t scanned() const { return static_cast<std::size_t>(op.scanned); }
  std::vector<bool> scanned_linear() const { return of(carries(), scanned()); }
  std::vector<bool> constants_linear() const { return of(carries() + scanned(), linear.size() - carries() - scanned()); }

  /// in: cotangents of the carry, sums for linear constants; cotangents of the stacked results, scanned residuals; constant residuals.
  Values operator()(const Values& in) const {
    GraphData& graph = in[0].graph();
    const std::vector<bool> scanned_marks = scanned_linear(), constant_marks = constants_linear();
    Reader reader(in);
    Values cotangents = reader.take(carries());
    const Values sums = reader.take(count(constant_marks));
    append(cotangents, reader.take(op.step->outputs().size() - carries()));
    Values operands(carries());
    for (const std::vector<bool>& marks : {scanned_marks, constant_marks})
      for (bool is_linear : marks) operands.push_back(is_linear ? Value() : reader.next());
    const Values dx = transpose_linear(graph, *op.step, operands, cotangents);
    const std::vector<Type> types = input_types(*op.step);
    Values results, slices;
    for (std::size_t i = 0; i < carries(); ++i) results.push_back(materialized(graph, dx[i], types[i]));
    for (std::size_t i = carries(), next = 0; i < dx.size(); ++i) {
      if (i < carries() + scanned()) {
        if (linear[i]) slices.push_back(materialized(graph, dx[i], types[i]));
      } else if (linear[i]) {
        results.push_back(sum_of(sums[next++], dx[i]));
      }
    }
    append(results, slices);
    return results;
  }
};

}  // namespace

Values Scan::transpose(const Scan& op, std::span<const Value> x, const std::vector<bool>& linear, std::span<const Value> dy) {
  GraphData& target = innermost_graph(name, dy);
  const BackwardStep backward{op, linear};
  const std::size_t carries = backward.carries(), scanned = backward.scanned();
  const std::vector<Type> types = output_types(*op.step);
  Values operands, stacked, constants;
  std::vector<Type> inputs;
  for (std::size_t i = 0; i < carries; ++i) {
    if (!carries_tangent(types[i]))
      fail("rlx.scan: not differentiable in reverse mode: its carry {} mixes tangents with {}", i, types[i].to_string());
    operands.push_back(materialized(target, dy[i], types[i]));
  }
  for (std::size_t i = carries + scanned; i < x.size(); ++i)
    linear[i] ? operands.push_back(zeros(target, x[i].type())) : constants.push_back(x[i]);
  Scan reversed{{}, std::ssize(operands), 0, op.length, !op.reverse};
  for (std::size_t i = carries; i < types.size(); ++i) {
    Type type = types[i];
    type.shape.insert(type.shape.begin(), op.length[0]);
    stacked.push_back(materialized(target, dy[i], type));
  }
  for (std::size_t i = carries; i < carries + scanned; ++i)
    if (!linear[i]) stacked.push_back(x[i]);
  reversed.scanned = std::ssize(stacked);
  append(operands, stacked);
  append(operands, constants);
  inputs = types_of(operands);
  for (std::int64_t i = reversed.carries; i < reversed.carries + reversed.scanned; ++i) {
    Dims& shape = inputs[static_cast<std::size_t>(i)].shape;
    shape.erase(shape.begin());
  }
  reversed.step = closed_region("backward_step", inputs, backward);
  const Values results = scan_with_sums_behind(reversed, operands);
  Reader reader(results);
  Values dx = reader.take(carries);
  const Values sums = reader.spread(backward.constants_linear());
  append(dx, reader.spread(backward.scanned_linear()));
  append(dx, sums);
  return dx;
}

std::vector<Dual> differentiate_scan(GraphData& target, const Attrs& attrs, const std::vector<Dual>& operands, PassMode mode) {
  const Scan op = Op<Scan>::from(attrs);
  return mode == PassMode::forward ? forward_scan(target, op, operands) : reverse_scan(target, op, operands);
}

Values Scan::jvp(const Scan& op, std::span<const Value> x, std::span<const Value>, std::span<const Value> dx) {
  return tangents_of(forward_scan(innermost_graph(name, dx), op, zip_duals({x.begin(), x.end()}, {dx.begin(), dx.end()})));
}

}  // namespace rlx
