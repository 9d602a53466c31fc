// Control flow: call, cond, while and scan, whose parts are regions; and the two marks stop_gradient and after. How they are
// differentiated and batched is in src/transform.
#include "ops/control/control.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "ir/graph_data.h"
#include "ir/rebuild.h"
#include "ir/region.h"
#include "rlx/ops.h"

namespace rlx {
namespace {

using In = std::span<const Value>;

/// The op and region that a check speaks of.
struct Place {
  std::string_view op, region;
};

const Graph& present(const Place& place, const Region& region) {
  if (!region) fail("rlx.{}: the region '{}' is missing", place.op, place.region);
  return *region;
}

void check_inputs(const Place& place, const Region& region, const std::vector<Type>& wanted) {
  const std::vector<Type> given = input_types(present(place, region));
  if (given.size() != wanted.size()) fail("rlx.{}: '{}' takes {} operands, given {}", place.op, place.region, given.size(), wanted.size());
  for (std::size_t i = 0; i < given.size(); ++i)
    if (!(given[i] == wanted[i]))
      fail("rlx.{}: input {} of '{}' is {}, given {}", place.op, i, place.region, given[i].to_string(), wanted[i].to_string());
}

void check_carry(std::string_view op, std::span<const Type> carry, const std::vector<Type>& given) {
  if (given.size() < carry.size()) fail("rlx.{}: the carry has {} values, the step gives {}", op, carry.size(), given.size());
  for (std::size_t i = 0; i < carry.size(); ++i)
    if (!(given[i] == carry[i])) fail("rlx.{}: carry {} is {}, the step gives {}", op, i, carry[i].to_string(), given[i].to_string());
}

void check_predicate(std::string_view op, const Type& type) {
  if (!is_bool(type.dtype) || type.rank() != 0) fail("rlx.{}: the predicate is {} (allowed: a bool scalar)", op, type.to_string());
}

void check_carry_count(std::string_view op, std::int64_t needed, std::size_t given) {
  if (needed < 0 || needed > static_cast<std::int64_t>(given)) fail("rlx.{}: needs at least {} operands, given {}", op, needed, given);
}

void append(Values& to, const Values& more) { to.insert(to.end(), more.begin(), more.end()); }

}  // namespace

// `call`

namespace {
const Op<Call> call_op;
}  // namespace

Dim call_batch_size() { return Dim::symbol("call_batch", std::int64_t{1} << 20); }

Values Call::body(const Call& op, In x) {
  check_inputs({name, "function"}, op.function, types_of(x));
  check_carry_count(name, op.captured, x.size());
  return inline_graph(*op.function, x);
}

std::vector<Sample> Call::samples() {
  const Type t{f32, {3}};
  Region square_sum =
      closed_region("square_sum", {t, t}, [](const Values& x) { return Values{x[0] * x[0] + x[1], sum(x[1] * x[0], {0})}; });
  Call plain, saving;
  plain.function = saving.function = square_sum;
  saving.save = Save::nothing;
  return {{{{t}, {t}}, attrs_of(plain), 1e-6}, {{{t}, {t}}, attrs_of(saving), 1e-6}};
}

Values make_call(const Call& op, In x) { return call_op.all(op, x); }

// `cond`

namespace {
const Op<Cond> cond_op;
}  // namespace

std::vector<Type> Cond::infer(const Cond& op, std::span<const Type> operands) {
  check_carry_count(name, 1, operands.size());
  check_predicate(name, operands[0]);
  const std::vector<Type> wanted(operands.begin() + 1, operands.end());
  check_inputs({name, "then"}, op.then, wanted);
  check_inputs({name, "otherwise"}, op.otherwise, wanted);
  const std::vector<Type> a = output_types(*op.then), b = output_types(*op.otherwise);
  if (a.size() != b.size()) fail("rlx.cond: 'then' gives {} results, 'otherwise' {}", a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i)
    if (!(a[i] == b[i])) fail("rlx.cond: result {} is {} from 'then' and {} from 'otherwise'", i, a[i].to_string(), b[i].to_string());
  return a;
}

void Cond::evaluate(const Cond& op, std::span<const Array> operands, std::span<Array> results, const RunRegion& run) {
  const std::vector<Array> given = run(operands[0].get_uint(0) ? op.then : op.otherwise, operands.subspan(1));
  std::copy(given.begin(), given.end(), results.begin());
}

std::vector<Sample> Cond::samples() {
  const Type t{f32, {3}};
  Cond op{closed_region("then", {t, t}, [](const Values& x) { return Values{sin(x[0]) * x[1]}; }),
          closed_region("otherwise", {t, t}, [](const Values& x) { return Values{x[0] - x[1]}; })};
  return {{{{{boolean, {}}, 0, 0}, {t}, {t}}, attrs_of(op), 1e-6}, {{{{boolean, {}}, 1, 1}, {t}, {t}}, attrs_of(op), 1e-6}};
}

Values make_cond(const Cond& op, In x) { return cond_op.all(op, x); }

// `while`

namespace {
const Op<While> while_op;
}  // namespace

std::vector<Type> While::infer(const While& op, std::span<const Type> operands) {
  check_carry_count(name, op.carries, operands.size());
  check_inputs({name, "condition"}, op.condition, {operands.begin(), operands.end()});
  check_inputs({name, "step"}, op.step, {operands.begin(), operands.end()});
  const std::vector<Type> predicate = output_types(*op.condition), carry = output_types(*op.step);
  if (predicate.size() != 1) fail("rlx.while: the condition gives {} results (allowed: 1)", predicate.size());
  check_predicate(name, predicate[0]);
  check_carry(name, operands.first(static_cast<std::size_t>(op.carries)), carry);
  if (carry.size() != static_cast<std::size_t>(op.carries))
    fail("rlx.while: the step gives {} results for {} carries", carry.size(), op.carries);
  return carry;
}

void While::evaluate(const While& op, std::span<const Array> operands, std::span<Array> results, const RunRegion& run) {
  std::vector<Array> values(operands.begin(), operands.end());
  while (run(op.condition, values)[0].get_uint(0)) {
    const std::vector<Array> next = run(op.step, values);
    std::copy(next.begin(), next.end(), values.begin());
  }
  std::copy_n(values.begin(), op.carries, results.begin());
}

std::vector<Sample> While::samples() {
  const Type count{i32, {}}, t{f32, {3}};
  While op{closed_region("condition", {count, t, t}, [](const Values& x) { return Values{lt(x[0], scalar(x[0], 3, i32))}; }),
           closed_region("step", {count, t, t}, [](const Values& x) { return Values{x[0] + 1, sin(x[1]) * x[2]}; }), 2};
  return {{{{count, 0, 1}, {t}, {t}}, attrs_of(op), 1e-6}};
}

Values make_while(const While& op, In x) { return while_op.all(op, x); }

// `scan`

namespace {

const Op<Scan> scan_op;

/// Copies `count` elements; packed types have no byte of their own for each.
void copy_slice(const Array& from, std::int64_t from_start, Array& to, std::int64_t to_start, std::int64_t count) {
  if (is_packed(from.dtype())) {
    for (std::int64_t i = 0; i < count; ++i) to.set_int(to_start + i, from.get_int(from_start + i));
    return;
  }
  const std::size_t width = static_cast<std::size_t>(info(from.dtype()).bits) / 8;
  if (count == 0) return;
  std::memcpy(to.mutable_bytes().data() + static_cast<std::size_t>(to_start) * width,
              from.bytes().data() + static_cast<std::size_t>(from_start) * width, static_cast<std::size_t>(count) * width);
}

Array slice_of(const Array& stacked, std::int64_t i) {
  Array slice(stacked.dtype(), {stacked.shape().begin() + 1, stacked.shape().end()});
  copy_slice(stacked, i * slice.size(), slice, 0, slice.size());
  return slice;
}

}  // namespace

std::vector<Type> Scan::infer(const Scan& op, std::span<const Type> operands) {
  check_carry_count(name, op.carries + op.scanned, operands.size());
  if (op.length.size() != 1 || !op.length[0].known_non_negative())
    fail("rlx.scan: length {} (allowed: one size >= 0)", to_string(op.length));
  const auto carries = static_cast<std::size_t>(op.carries), scanned = static_cast<std::size_t>(op.scanned);
  std::vector<Type> wanted(operands.begin(), operands.end());
  for (std::size_t i = carries; i < carries + scanned; ++i) {
    if (wanted[i].rank() == 0 || !(wanted[i].dim(0) == op.length[0]))
      fail("rlx.scan: operand {} is {}: its axis 0 must have the length {}", i - carries, wanted[i].to_string(), op.length[0].to_string());
    wanted[i].shape.erase(wanted[i].shape.begin());
  }
  check_inputs({name, "step"}, op.step, wanted);
  std::vector<Type> results = output_types(*op.step);
  check_carry(name, operands.first(carries), results);
  for (std::size_t i = carries; i < results.size(); ++i) results[i].shape.insert(results[i].shape.begin(), op.length[0]);
  return results;
}

void Scan::evaluate(const Scan& op, std::span<const Array> operands, std::span<Array> results, const RunRegion& run) {
  const auto carries = static_cast<std::size_t>(op.carries), scanned = static_cast<std::size_t>(op.scanned);
  const std::int64_t length = op.length[0].value();
  std::vector<Array> values(operands.begin(), operands.end());
  for (std::int64_t n = 0; n < length; ++n) {
    const std::int64_t i = op.reverse ? length - 1 - n : n;
    for (std::size_t k = carries; k < carries + scanned; ++k) values[k] = slice_of(operands[k], i);
    const std::vector<Array> next = run(op.step, values);
    std::copy_n(next.begin(), carries, values.begin());
    for (std::size_t k = carries; k < next.size(); ++k) copy_slice(next[k], 0, results[k], i * next[k].size(), next[k].size());
  }
  std::copy_n(values.begin(), carries, results.begin());
}

std::vector<Sample> Scan::samples() {
  const Type t{f32, {3}}, stacked{f32, {4, 3}};
  const Region step = closed_region("step", {t, t, t}, [](const Values& x) {
    Value next = sin(x[0]) * x[1] + x[2];
    return Values{next, next * x[0]};
  });
  return {{{{t}, {stacked}, {t}}, attrs_of(Scan{step, 1, 1, {4}, false}), 1e-6},
          {{{t}, {stacked}, {t}}, attrs_of(Scan{step, 1, 1, {4}, true}), 1e-6}};
}

Values make_scan(const Scan& op, In x) { return scan_op.all(op, x); }

// Marks.

namespace {

struct StopGradient {
  static constexpr OpKind kind = OpKind::composite;
  static constexpr std::string_view name = "stop_gradient";
  static constexpr std::string_view formula = "x, with derivative 0";
  static auto fields() { return Fields<>{}; }
  static Value body(const StopGradient&, Value x) { return x; }
  static Values jvp(const StopGradient&, In, In, In) { return {Value()}; }
  static Values batch(const StopGradient&, In x, const std::vector<bool>&, const Dim&) { return {stop_gradient(x[0])}; }
  static std::vector<Sample> samples() { return {{{{{f32, {3, 4}}}}, {}, 0, false}, {{{{i32, {3}}}}, {}, 0, false}}; }
};
const Op<StopGradient> stop_gradient_op;

struct After {
  static constexpr OpKind kind = OpKind::structure;
  static constexpr std::string_view name = "after";
  static constexpr std::string_view formula = "x, not before `token` is computed";
  static auto fields() { return Fields<>{}; }
  static Type infer(const After&, const Type& x, const Type&) { return x; }
  static std::vector<Source> sources(const After&, std::span<const Type>, const Type&, const std::vector<Index>& at) {
    return {{{}, 0, at, 0}};
  }
  static Values jvp(const After&, In, In, In dx) { return {dx[0]}; }
  static Values transpose(const After&, In, const std::vector<bool>& linear, In dy) { return {linear[0] ? dy[0] : Value(), Value()}; }
  static Values batch(const After&, In x, const std::vector<bool>& batched, const Dim& size) {
    if (batched[0]) return {after(x[0], x[1])};
    Dims shape = x[0].shape();
    shape.insert(shape.begin(), size);
    std::vector<std::int64_t> axes;
    for (std::int64_t axis = 1; axis <= x[0].rank(); ++axis) axes.push_back(axis);
    return {after(broadcast(x[0], shape, axes), x[1])};
  }
  static std::vector<Sample> samples() { return {{{{{f32, {3, 4}}}, {{f32, {2}}}}, {}}, {{{{i32, {3}}}, {{f32, {}}}}, {}}}; }
};
const Op<After> after_op;

}  // namespace

Value after(Value x, Value token) { return after_op({}, x, token); }

/// x as a constant: derivatives do not flow through it. Type and shape stay.
Value stop_gradient(Operand x) { return stop_gradient_op({}, x); }

// Builders.

/// The results of `then` where the bool `predicate` of rank 0 holds, else those of `otherwise`; only one of them runs. Both are called
/// with the operands, may use other values of the graph, and must give the same types, else Error.
Values cond(Operand predicate, Values operands, const std::function<Values(const Values&)>& then,
            const std::function<Values(const Values&)>& otherwise) {
  Values all{predicate};
  append(all, operands);
  GraphData& graph = innermost_graph("cond", all);
  const std::vector<Type> types = types_of(operands);
  const ClosedRegions closed =
      close_regions({trace_region("then", &graph, types, then), trace_region("otherwise", &graph, types, otherwise)});
  append(all, closed.captures);
  return make_cond({closed.regions[0], closed.regions[1]}, all);
}

namespace {
using Branch = std::function<Values(const Values&)>;

// A tree of conds.
Values nearest_branch(Value index, const Values& operands, std::span<const Branch> branches) {
  if (branches.size() == 1) return branches[0](operands);
  const std::size_t half = branches.size() / 2;
  auto half_of = [&](std::span<const Branch> part, std::size_t first) {
    return [=](const Values& x) { return nearest_branch(index - static_cast<double>(first), x, part); };
  };
  return cond(lt(index, scalar(index, static_cast<double>(half), index.dtype())), operands, half_of(branches.first(half), 0),
              half_of(branches.subspan(half), half));
}

// The results of branches[k], whose types must be those of branches[0].
Values same_results(const Values& results, std::size_t k, std::vector<Type>& first) {
  const std::vector<Type> types = types_of(results);
  if (k == 0) first = types;
  if (types.size() != first.size())
    fail("rlx.switch_case: branches[0] gives {} results, branches[{}] {} (allowed: the same of all)", first.size(), k, types.size());
  for (std::size_t i = 0; i < types.size(); ++i)
    if (!(types[i] == first[i]))
      fail("rlx.switch_case: result {} is {} from branches[0] and {} from branches[{}] (allowed: the same of all)", i, first[i].to_string(),
           types[i].to_string(), k);
  return results;
}
}  // namespace

/// The results of branches[index]; an index outside 0..n-1 takes the nearest branch. A tree of conds.
Values switch_case(Operand index, Values operands, const std::vector<std::function<Values(const Values&)>>& branches) {
  if (branches.empty()) fail("rlx.switch_case: needs at least one branch");
  if (!is_integer(index.dtype()) || index.rank() != 0)
    fail("rlx.switch_case: the index is {} (allowed: an integer scalar)", index.type().to_string());
  std::vector<Type> first;
  std::vector<Branch> checked;
  for (std::size_t k = 0; k < branches.size(); ++k)
    checked.push_back([&, k](const Values& x) { return same_results(branches[k](x), k, first); });
  return nearest_branch(index, operands, checked);
}

/// carry = step(carry) as long as condition(carry), a bool scalar, holds. The types of the carry stay. Differentiable in forward mode.
Values while_loop(const std::function<Value(const Values&)>& condition, const std::function<Values(const Values&)>& step, Operands carry) {
  GraphData& graph = innermost_graph("while", carry);
  const std::vector<Type> types = types_of(carry);
  const ClosedRegions closed =
      close_regions({trace_region("condition", &graph, types, [&](const Values& x) { return Values{condition(x)}; }),
                     trace_region("step", &graph, types, step)});
  Values all = carry;
  append(all, closed.captures);
  return make_while({closed.regions[0], closed.regions[1], std::ssize(carry)}, all);
}

/// Runs carry, y = step(carry, slice of each of `xs` along axis 0) from the first slice to the last, or back with `reverse`. Gives
/// the last carry, then every y stacked along a new axis 0 in the order of the slices. `length` is needed when there are no xs.
Values scan(const std::function<std::pair<Values, Values>(const Values& carry, const Values& x)>& step, Operands carry, Values xs,
            std::optional<Dim> length /*= {}*/, bool reverse /*= false*/) {
  if (!length && xs.empty()) fail("rlx.scan: without operands to scan it needs a length");
  if (!length && xs[0].rank() == 0) fail("rlx.scan: operand 0 is {}: it has no axis to scan", xs[0].type().to_string());
  Values all = carry;
  append(all, xs);
  std::vector<Type> types = types_of(all);
  for (std::size_t i = carry.size(); i < types.size(); ++i)
    if (types[i].rank() > 0) types[i].shape.erase(types[i].shape.begin());
  const ClosedRegions closed = close_regions({trace_region("step", &innermost_graph("scan", all), types, [&](const Values& in) {
    const auto split = in.begin() + std::ssize(carry);
    auto [next, y] = step(Values(in.begin(), split), Values(split, in.end()));
    if (next.size() != carry.size()) fail("rlx.scan: the carry has {} values, the step gives {}", carry.size(), next.size());
    append(next, y);
    return next;
  })});
  append(all, closed.captures);
  return make_scan({closed.regions[0], std::ssize(carry), std::ssize(xs), {length ? *length : xs[0].dim(0)}, reverse}, all);
}

/// carry = step(i, carry) for i = 0..count-1 (an i32 scalar); a scan, so differentiable in both modes.
Values fori_loop(Dim count, const std::function<Values(Value i, const Values& carry)>& step, Operands carry) {
  if (carry.empty()) fail("rlx.fori_loop: needs at least one carried value");
  Value indices = iota(carry[0], {count}, i32);
  return scan([&](const Values& values, const Values& x) { return std::pair{step(x[0], values), Values{}}; }, carry, {indices}, count);
}

}  // namespace rlx
