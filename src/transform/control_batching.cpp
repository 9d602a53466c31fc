// Batching of the ops that have regions.
#include <algorithm>
#include <numeric>

#include "ir/rebuild.h"
#include "ir/region.h"
#include "ops/control/control.h"
#include "rlx/ops.h"
#include "transform/batching.h"
#include "transform/substitute.h"
#include "transform/tangent.h"

namespace rlx {
namespace {

std::vector<Batched> with_marks(const Values& values, const std::vector<bool>& marks) {
  std::vector<Batched> result;
  for (std::size_t i = 0; i < values.size(); ++i) result.push_back({values[i], marks[i]});
  return result;
}

std::vector<Type> batched_types(std::vector<Type> types, const std::vector<bool>& marks, const Dim& size) {
  for (std::size_t i = 0; i < types.size(); ++i)
    if (marks[i]) types[i] = batched_type(types[i], size);
  return types;
}

/// Which outputs of a region have a batch when the marked inputs have one.
std::vector<bool> batched_outputs(const Graph& region, const std::vector<bool>& marks, const Dim& size) {
  std::vector<bool> result;
  trace_region("probe", nullptr, batched_types(input_types(region), marks, size), [&](const Values& in) {
    for (const Batched& y : batch_graph(in[0].graph(), region, with_marks(in, marks), size)) result.push_back(y.batched);
    return Values{};
  });
  return result;
}

/// `marks` widened until the carry is stable.
std::vector<bool> stable_marks(const Graph& step, std::size_t carries, std::vector<bool> marks, const Dim& size) {
  for (bool changed = true; changed;) {
    changed = false;
    const std::vector<bool> out = batched_outputs(step, marks, size);
    for (std::size_t i = 0; i < carries; ++i)
      if (out[i] && !marks[i]) changed = marks[i] = true;
  }
  return marks;
}

/// The outputs with a batch where `wanted` says so, which is at least where they have one.
Values run_batched(const Graph& region, const Values& in, const std::vector<bool>& marks, const std::vector<bool>& wanted,
                   const Dim& size) {
  const std::vector<Batched> results = batch_graph(in[0].graph(), region, with_marks(in, marks), size);
  Values values;
  for (std::size_t i = 0; i < results.size(); ++i) values.push_back(wanted[i] ? with_batch(results[i], size) : results[i].value);
  return values;
}

Region batched_region(const Graph& region, const std::vector<bool>& marks, const std::vector<bool>& wanted, const Dim& size) {
  return closed_region(region.name(), batched_types(input_types(region), marks, size),
                       [&](const Values& in) { return run_batched(region, in, marks, wanted, size); });
}

/// The operands, with a batch where the marks ask for one and the operand has none yet.
Values with_batches(std::span<const Value> x, const std::vector<bool>& has, const std::vector<bool>& wanted, const Dim& size) {
  Values values;
  for (std::size_t i = 0; i < x.size(); ++i) values.push_back(wanted[i] && !has[i] ? with_batch({x[i], false}, size) : x[i]);
  return values;
}

/// The batch's predicate (size) along the other axes of a batched value.
Value along(Value predicate, Value like) { return broadcast(predicate, like.shape(), {0}); }

}  // namespace

Values Cond::batch(const Cond& op, std::span<const Value> x, const std::vector<bool>& batched, const Dim& size) {
  const std::vector<bool> marks(batched.begin() + 1, batched.end()), all(op.then->outputs().size(), true);
  if (!batched[0]) return make_cond({batched_region(*op.then, marks, all, size), batched_region(*op.otherwise, marks, all, size)}, x);
  // Some examples take one branch, some the other: run both and choose.
  const Values operands(x.begin() + 1, x.end());
  std::vector<Batched> given = with_marks(operands, marks);
  GraphData& target = innermost_graph(name, x);
  const std::vector<Batched> a = batch_graph(target, *op.then, given, size), b = batch_graph(target, *op.otherwise, given, size);
  Values results;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const Value yes = with_batch(a[i], size), no = with_batch(b[i], size);
    results.push_back(select(along(x[0], yes), yes, no));
  }
  return results;
}

Values While::batch(const While& op, std::span<const Value> x, const std::vector<bool>& batched, const Dim& size) {
  const auto carries = static_cast<std::size_t>(op.carries);
  std::vector<bool> marks = stable_marks(*op.step, carries, batched, size);
  const bool many_ends = batched_outputs(*op.condition, marks, size)[0];
  if (many_ends) std::fill_n(marks.begin(), carries, true);
  const std::vector<bool> carry_marks(marks.begin(), marks.begin() + static_cast<std::ptrdiff_t>(carries));
  const std::vector<Type> types = batched_types(input_types(*op.step), marks, size);
  While loop{{}, {}, op.carries};
  // Examples that are done keep their values until all are.
  auto goes_on = [&](const Values& in) { return run_batched(*op.condition, in, marks, {many_ends}, size)[0]; };
  loop.condition =
      closed_region("condition", types, [&](const Values& in) { return Values{many_ends ? any(goes_on(in), {0}) : goes_on(in)}; });
  loop.step = closed_region("step", types, [&](const Values& in) {
    Values next = run_batched(*op.step, in, marks, carry_marks, size);
    for (std::size_t i = 0; many_ends && i < carries; ++i) next[i] = select(along(goes_on(in), next[i]), next[i], in[i]);
    return next;
  });
  const Values results = make_while(loop, with_batches(x, batched, marks, size));
  return with_batches(results, carry_marks, std::vector<bool>(carries, true), size);
}

Values Scan::batch(const Scan& op, std::span<const Value> x, const std::vector<bool>& batched, const Dim& size) {
  const auto carries = static_cast<std::size_t>(op.carries), scanned = static_cast<std::size_t>(op.scanned);
  const std::vector<bool> marks = stable_marks(*op.step, carries, batched, size);
  std::vector<bool> wanted(op.step->outputs().size(), true);
  std::copy_n(marks.begin(), carries, wanted.begin());
  Values operands = with_batches(x, batched, marks, size);
  for (std::size_t i = carries; i < carries + scanned; ++i)
    if (marks[i]) operands[i] = move_axis(operands[i], 0, 1);  // slices are taken along axis 0
  Scan loop = op;
  loop.step = batched_region(*op.step, marks, wanted, size);
  Values results = make_scan(loop, operands);
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (i >= carries) results[i] = move_axis(results[i], 1, 0);
    else if (!marks[i]) results[i] = with_batch({results[i], false}, size);
  }
  return results;
}

// `call`

namespace {

/// Marks of a rule's inputs: operands, then those of them (or of the results) that carry a tangent, then captures.
std::vector<bool> joined(std::initializer_list<std::vector<bool>> parts) {
  std::vector<bool> all;
  for (const std::vector<bool>& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

std::vector<bool> tangent_marks(const std::vector<Type>& types, const std::vector<bool>& marks) {
  std::vector<bool> result;
  for (std::size_t i = 0; i < marks.size(); ++i)
    if (carries_tangent(types[i])) result.push_back(marks[i]);
  return result;
}

/// The backward rule on a batch: operands without a batch get the sum of all examples' cotangents.
Region batched_backward(const Graph& rule, const std::vector<bool>& marks, const std::vector<bool>& wanted, const Dim& size) {
  return closed_region(rule.name(), batched_types(input_types(rule), marks, size), [&](const Values& in) {
    Values dx = run_batched(rule, in, marks, std::vector<bool>(wanted.size(), true), size);
    for (std::size_t i = 0; i < dx.size(); ++i)
      if (!wanted[i]) dx[i] = sum(dx[i], {0});
    return dx;
  });
}

}  // namespace

Values Call::batch(const Call& op, std::span<const Value> x, const std::vector<bool>& batched, const Dim& size) {
  const auto own = static_cast<std::ptrdiff_t>(x.size()) - op.captured;
  const std::vector<bool> marks(batched.begin(), batched.begin() + own), captures(batched.begin() + own, batched.end());
  if (op.batch_rule && std::find(captures.begin(), captures.end(), true) == captures.end()) {
    Values operands = with_batches(x, batched, joined({std::vector<bool>(marks.size(), true), captures}), size);
    return inline_graph(with_symbol(*op.batch_rule, "call_batch", size), operands);
  }
  const std::vector<Type> in = input_types(*op.function), out = output_types(*op.function);
  const std::vector<bool> results(out.size(), true);
  Call call = op;
  call.batch_rule = {};
  call.label = {};  // its kernels know no batches
  call.function = batched_region(*op.function, batched, results, size);
  const std::vector<bool> dx = tangent_marks(in, marks), dy = tangent_marks(out, results);
  if (op.jvp_rule) call.jvp_rule = batched_region(*op.jvp_rule, joined({marks, dx, captures}), dy, size);
  if (op.forward_rule) {
    const std::vector<bool> forward(op.forward_rule->outputs().size(), true);
    const std::vector<bool> residuals(forward.size() - results.size(), true);
    call.forward_rule = batched_region(*op.forward_rule, batched, forward, size);
    call.backward_rule = batched_backward(*op.backward_rule, joined({residuals, dy, captures}), dx, size);
  }
  return make_call(call, x);
}

}  // namespace rlx
