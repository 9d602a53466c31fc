#include "transform/linear_call.h"

#include "ir/graph_data.h"
#include "ir/rebuild.h"
#include "ir/region.h"
#include "transform/tangent.h"

namespace rlx {
namespace {

using Ints = std::vector<std::int64_t>;

/// Operands: tangents, then residuals. Inputs of `backward`: cotangents of the results, then residuals; output i is the cotangent of
/// tangent targets[i].
struct LinearCall {
  static constexpr OpKind kind = OpKind::primitive;
  static constexpr std::string_view name = "linear_call";
  Region backward;
  std::int64_t results = 0;
  Ints targets;
  static auto fields() { return Fields<&LinearCall::backward, &LinearCall::results, &LinearCall::targets>{}; }

  static std::vector<Type> infer(const LinearCall& op, std::span<const Type>) {
    std::vector<Type> types = input_types(*op.backward);
    types.resize(static_cast<std::size_t>(op.results));
    return types;
  }
  static Values transpose(const LinearCall& op, std::span<const Value> x, const std::vector<bool>& linear, std::span<const Value> dy) {
    GraphData& target = innermost_graph(name, dy);
    Values operands, cotangents(x.size());
    for (std::size_t i = 0; i < dy.size(); ++i) operands.push_back(materialized(target, dy[i], op.backward->inputs()[i].first.type));
    for (std::size_t i = 0; i < x.size(); ++i)
      if (!linear[i]) operands.push_back(x[i]);
    const Values dx = inline_graph(target, *op.backward, operands);
    for (std::size_t i = 0; i < dx.size(); ++i) cotangents[static_cast<std::size_t>(op.targets[i])] = dx[i];
    return cotangents;
  }
};

/// Not in the registry: no graph that a user sees has one.
const OpDef& linear_call_def() {
  static const OpDef def = [] {
    OpDef d;
    d.name = LinearCall::name;
    d.fields = detail::describe_all<LinearCall>(LinearCall::fields());
    d.infer = [](const Attrs& a, std::span<const Type> x) { return LinearCall::infer(detail::unpack<LinearCall>(a, LinearCall::fields()), x); };
    d.transpose = [](const Attrs& a, std::span<const Value> x, const std::vector<bool>& linear, std::span<const Value> dy) {
      return LinearCall::transpose(detail::unpack<LinearCall>(a, LinearCall::fields()), x, linear, dy);
    };
    return d;
  }();
  return def;
}

Values present(const Values& values) {
  Values result;
  for (Value v : values)
    if (v) result.push_back(v);
  return result;
}

}  // namespace

Values linear_call(const Values& y, const Values& dx, const Values& residuals, const Backward& backward) {
  Values varying;
  for (Value v : y)
    if (carries_tangent(v.type())) varying.push_back(v);
  std::vector<Type> inputs = types_of(varying);
  for (const Type& type : types_of(residuals)) inputs.push_back(type);
  LinearCall op{{}, std::ssize(varying), {}};
  op.backward = closed_region("backward", inputs, [&](const Values& in) {
    const auto split = in.begin() + std::ssize(varying);
    Values given(in.begin(), split), dy;
    for (std::size_t i = 0, next = 0; i < y.size(); ++i) dy.push_back(carries_tangent(y[i].type()) ? given[next++] : Value());
    const Values cotangents = backward(dy, Values(split, in.end()));
    for (std::size_t i = 0; i < cotangents.size(); ++i)
      if (cotangents[i]) op.targets.push_back(static_cast<std::int64_t>(i));
    return present(cotangents);
  });
  if (op.targets.empty()) return Values(y.size());
  Values operands = present(dx), tangents;
  operands.insert(operands.end(), residuals.begin(), residuals.end());
  const Values results = apply(linear_call_def(), attrs_of(op), operands);
  for (std::size_t i = 0, next = 0; i < y.size(); ++i) tangents.push_back(carries_tangent(y[i].type()) ? results[next++] : Value());
  return tangents;
}

Values linear_by_vjp(const OpDef& op, const Attrs& attrs, const Values& x, const Values& y, const Values& dx) {
  Values residuals = x;
  residuals.insert(residuals.end(), y.begin(), y.end());
  return linear_call(y, dx, residuals, [&](const Values& dy, const Values& saved) {
    const std::span<const Value> all(saved);
    const Values every = op.vjp(attrs, all.first(x.size()), all.subspan(x.size()), dy);
    Values wanted;
    for (std::size_t i = 0; i < x.size(); ++i)
      if (dx[i]) wanted.push_back(every.at(i));
    return wanted;
  });
}

}  // namespace rlx
