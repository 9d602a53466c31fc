#include "kernel/pull.h"

#include <algorithm>

#include "base/hash.h"
#include "ir/guards.h"
#include "ir/sources.h"
#include "kernel/cost.h"

namespace rlx {

int Puller::buffer_of(ValueId value, bool written) {
  for (std::size_t i = 0; i < kernel_.buffers.size(); ++i)
    if (kernel_.buffers[i].value == value && kernel_.buffers[i].written == written) return static_cast<int>(i);
  kernel_.buffers.push_back({value, graph_.type(value).dtype, written});
  return static_cast<int>(kernel_.buffers.size()) - 1;
}

std::vector<Type> Puller::operand_types(const Node& node) const {
  std::vector<Type> types;
  for (ValueId id : node.operands) types.push_back(graph_.type(id));
  return types;
}

ExprId Puller::pull(ValueId value, const std::vector<Index>& at, bool as_body) {
  std::size_t h = hash_mix(static_cast<std::size_t>(value.node), static_cast<std::size_t>(value.result) + (as_body ? 1000 : 0));
  for (const Index& i : at) h = hash_mix(h, i.hash());
  for (auto [it, end] = memo_.equal_range(h); it != end; ++it)
    if (std::get<0>(it->second) == value && std::get<1>(it->second) == at) return std::get<2>(it->second);
  ExprId result;
  const Array* constant = constant_value(graph_.node(value.node));
  if (constant && constant->size() == 1 && can_generate(constant->dtype())) {
    Expr e;
    e.dtype = constant->dtype();
    if (is_float(e.dtype)) e.number = constant->get_double(0);
    else e.integer = constant->get_int(0);
    result = kernel_.add(std::move(e));
  } else if (!as_body && is_stored_(value)) {
    Expr e;
    e.kind = Expr::Kind::load;
    e.dtype = graph_.type(value).dtype;
    e.buffer = buffer_of(value, false);
    e.index = flatten(at, graph_.type(value).shape);
    e.last = graph_.type(value).size() - 1;
    result = kernel_.add(std::move(e));
  } else {
    result = compute(value, at);
  }
  memo_.emplace(h, std::tuple{value, at, result});
  return result;
}

bool Puller::computed_elsewhere(ValueId value, const std::vector<std::vector<Index>>& places) const {
  return std::any_of(memo_.begin(), memo_.end(), [&](const auto& entry) {
    return std::get<0>(entry.second) == value && std::find(places.begin(), places.end(), std::get<1>(entry.second)) == places.end();
  });
}

ExprId Puller::compute(ValueId value, const std::vector<Index>& at) {
  computed_.insert(value);
  const Node& node = graph_.node(value.node);
  const Type& type = graph_.type(value);
  if (node.op->kind == OpKind::scalar) {
    std::vector<ExprId> args;
    for (ValueId operand : node.operands) args.push_back(pull(operand, at));
    return kernel_.scalar(static_cast<ScalarOp>(node.op->scalar), std::move(args), type.dtype);
  }
  if (node.op->loop) return pull_loop(value, node, at);
  const std::vector<Type> types = operand_types(node);
  if (node.op->sources) return pull_sources(node, node.op->sources(node.attrs, types, type, at), type.dtype);
  if (node.op->address) {
    const ReadIndex read = [&](int operand, const std::vector<Index>& where, std::optional<Dim> limit) {
      return read_index(node, operand, where, limit);
    };
    return pull_sources(node, node.op->address(node.attrs, types, type, at, read), type.dtype);
  }
  fail_internal("pull: no rule to compute {} at node {}", node.op->name, value.node);
}

namespace {
/// What a source without a known-false guard contributes; guards that always hold are dropped.
std::vector<Guard> open_guards(const std::vector<Guard>& guards) {
  std::vector<Guard> open;
  for (const Guard& guard : guards)
    if (!always_holds(guard)) open.push_back(guard);
  return open;
}
}  // namespace

ExprId Puller::pull_sources(const Node& node, const std::vector<Source>& sources, DType dtype) {
  // Built from the last, unconditional source backwards.
  ExprId result = -1;
  for (std::size_t i = sources.size(); i-- > 0;) {
    const Source& source = sources[i];
    if (never_hold(source.guards)) continue;
    ExprId value;
    if (source.operand == Source::fill_value) {
      value = kernel_.constant(source.fill, dtype);
    } else if (source.operand == Source::index_value) {
      Expr e;
      e.kind = Expr::Kind::position;
      e.dtype = dtype;
      e.index = source.index[0];
      value = kernel_.add(std::move(e));
    } else {
      value = pull(node.operands[static_cast<std::size_t>(source.operand)], source.index);
    }
    std::vector<Guard> guards = open_guards(source.guards);
    if (guards.empty() || result < 0) {
      result = value;
      continue;
    }
    Expr e;
    e.kind = Expr::Kind::choose;
    e.dtype = dtype;
    e.guards = std::move(guards);
    e.args = {value, result};
    result = kernel_.add(std::move(e));
  }
  if (result < 0) fail_internal("pull: {} has no source that can hold", node.op->name);
  return result;
}

/// A variable of this extent for a reduction at `at`. Reductions share theirs, and the innermost loop of the kernel, so that equal terms
/// are one expression and the schedule can run them in one loop, or keep them for the next; not where one is inside the other.
int Puller::loop_variable(const Dim& extent, const std::vector<Index>& at, const std::vector<int>& taken) {
  if (!kernel_.tile && !kernel_.loops.empty()) loop_depth_[kernel_.loops.back()] = 0;
  std::set<int> used;
  add_free_variables(kernel_, free_);
  for (const Index& index : at) add_index_variables(index, free_, used);
  int depth = 0;
  for (int v : used)
    if (auto it = loop_depth_.find(v); it != loop_depth_.end()) depth = std::max(depth, it->second + 1);
  for (const auto& [v, its_depth] : loop_depth_)
    if (its_depth == depth && kernel_.extent(v) == extent && std::find(taken.begin(), taken.end(), v) == taken.end()) return v;
  const int v = kernel_.add_variable(extent);
  loop_depth_[v] = depth;
  return v;
}

ExprId Puller::pull_loop(ValueId value, const Node& node, const std::vector<Index>& at) {
  const Type& type = graph_.type(value);
  Expr reduce;
  reduce.kind = Expr::Kind::reduce;
  reduce.origin = value;
  const FreshVariable fresh = [&](const Dim& extent) {
    const int id = loop_variable(extent, at, reduce.variables);
    reduce.variables.push_back(id);
    return Index::variable(id, extent);
  };
  const Loop loop = node.op->loop(node.attrs, operand_types(node), type, at, fresh);
  reduce.reduce = loop.kind;
  reduce.dtype = loop.accumulate;
  ExprId body = -1;
  for (const auto& factor : loop.factors) {
    ExprId value_of_factor = pull_sources(node, factor, type.dtype);
    if (type.dtype != loop.accumulate) value_of_factor = kernel_.scalar(ScalarOp::cast, {value_of_factor}, loop.accumulate);
    body = body < 0 ? value_of_factor : kernel_.scalar(ScalarOp::mul, {body, value_of_factor}, loop.accumulate);
  }
  reduce.args = {body};
  // A loop of one step is its body.
  std::erase_if(reduce.variables, [&](int v) { return kernel_.extent(v) == Dim(1); });
  const ExprId total = reduce.variables.empty() ? body : kernel_.add(std::move(reduce));
  return type.dtype == loop.accumulate ? total : kernel_.scalar(ScalarOp::cast, {total}, type.dtype);
}

Index Puller::read_index(const Node& node, int operand, const std::vector<Index>& at, const std::optional<Dim>& limit) {
  ExprId raw = pull(node.operands[static_cast<std::size_t>(operand)], at);
  const DType own = kernel_.expr(raw).dtype;
  // In its own type: what i64 does not hold is beyond every axis.
  if (own == u64) raw = kernel_.scalar(ScalarOp::min, {raw, kernel_.constant(0x1p62, u64)}, u64);
  ExprId wide = own == i64 ? raw : kernel_.scalar(ScalarOp::cast, {raw}, i64);
  if (!limit) {
    // Any integer, to be compared, not multiplied by strides: 2^39 elements are more than an axis in memory has, so that a number
    // clamped to that is outside of the axis as the number itself is. An atom starts at 0, so the range is shifted.
    constexpr std::int64_t half = std::int64_t{1} << 39;
    if (info(own).bits > 32) {
      const ExprId low = kernel_.constant(static_cast<double>(-half), i64), high = kernel_.constant(static_cast<double>(half - 1), i64);
      wide = kernel_.scalar(ScalarOp::max, {kernel_.scalar(ScalarOp::min, {wide, high}, i64), low}, i64);
    }
    const ExprId shifted = kernel_.scalar(ScalarOp::add, {wide, kernel_.constant(static_cast<double>(half), i64)}, i64);
    return Index::loaded(shifted, Dim(2 * half)) - Index(Dim(half));
  }
  Expr top;
  top.kind = Expr::Kind::position;
  top.dtype = i64;
  top.index = Index(*limit - Dim(1));
  const ExprId zero = kernel_.constant(0, i64);
  wide = kernel_.scalar(ScalarOp::max, {kernel_.scalar(ScalarOp::min, {wide, kernel_.add(std::move(top))}, i64), zero}, i64);
  return Index::loaded(wide, *limit);
}

}  // namespace rlx
