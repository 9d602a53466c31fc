#include "transform/linear_call.h"

#include "ir/graph_data.h"
#include "ir/rebuild.h"
#include "ir/region.h"
#include "transform/control_rules.h"
#include "transform/tangent.h"

namespace rlx {
namespace {

using Ints = std::vector<std::int64_t>;

/// Operands: tangents, then residuals. Inputs of `backward`: cotangents of the results, then residuals; output i is the cotangent of
/// tangent targets[i].
struct LinearCall {
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

/// Operands: tangents. Results: of the types of `like`'s outputs.
struct LinearRefusal {
  static constexpr std::string_view name = "linear_refusal";
  std::string message;
  Region like;
  static auto fields() { return Fields<&LinearRefusal::message, &LinearRefusal::like>{}; }
  static std::vector<Type> infer(const LinearRefusal& op, std::span<const Type>) { return output_types(*op.like); }
  static Values transpose(const LinearRefusal& op, std::span<const Value>, const std::vector<bool>&, std::span<const Value>) {
    fail("{}", op.message);
  }
};

/// Not in the registry: no graph that a user sees has one.
template <class T>
const OpDef& unregistered() {
  static const OpDef def = [] {
    OpDef d;
    d.name = T::name;
    d.fields = detail::describe_all<T>(T::fields());
    d.infer = [](const Attrs& a, std::span<const Type> x) { return T::infer(detail::unpack<T>(a, T::fields()), x); };
    d.transpose = [](const Attrs& a, std::span<const Value> x, const std::vector<bool>& linear, std::span<const Value> dy) {
      return T::transpose(detail::unpack<T>(a, T::fields()), x, linear, dy);
    };
    return d;
  }();
  return def;
}

/// One entry for each result: the next tangent where it carries one, else null.
Values spread(const Values& y, const Values& tangents) {
  Values result;
  for (std::size_t i = 0, next = 0; i < y.size(); ++i) result.push_back(carries_tangent(y[i].type()) ? tangents[next++] : Value());
  return result;
}

std::vector<Type> varying_types(const Values& y) {
  std::vector<Type> types;
  for (Value v : y)
    if (carries_tangent(v.type())) types.push_back(v.type());
  return types;
}

Values present(const Values& values) {
  Values result;
  for (Value v : values)
    if (v) result.push_back(v);
  return result;
}

}  // namespace

Values linear_call(const Values& y, const Values& dx, const Values& residuals, const Backward& backward) {
  std::vector<Type> inputs = varying_types(y);
  LinearCall op{{}, std::ssize(inputs), {}};
  for (const Type& type : types_of(residuals)) inputs.push_back(type);
  const Region whole = closed_region("backward", inputs, [&](const Values& in) {
    const auto split = in.begin() + op.results;
    const Values cotangents = backward(spread(y, Values(in.begin(), split)), Values(split, in.end()));
    for (std::size_t i = 0; i < cotangents.size(); ++i)
      if (cotangents[i]) op.targets.push_back(static_cast<std::int64_t>(i));
    return present(cotangents);
  });
  op.backward = std::make_shared<const Graph>(without_unused_results(*whole));
  if (op.targets.empty() || op.results == 0) return Values(y.size());
  Values operands = present(dx);
  operands.insert(operands.end(), residuals.begin(), residuals.end());
  return spread(y, apply(unregistered<LinearCall>(), attrs_of(op), operands));
}

Values linear_refusal(const Values& y, const Values& dx, const std::string& message) {
  if (varying_types(y).empty()) return Values(y.size());
  const Region like = closed_region("results", varying_types(y), [](const Values& in) { return in; });
  return spread(y, apply(unregistered<LinearRefusal>(), attrs_of(LinearRefusal{message, like}), present(dx)));
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
