#include "transform/transpose.h"

#include <map>
#include <ranges>

#include "ir/graph_data.h"
#include "ir/rebuild.h"
#include "ir/region.h"
#include "ir/sources.h"
#include "transform/tangent.h"

namespace rlx {
namespace {

class Transposition {
 public:
  Transposition(GraphData& target, const Graph& program, const Values& operands)
      : target_(target), program_(program), nodes_(needed_nodes(program.data(), output_ids(program))), linear_(program.size(), false) {
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const ValueId id = program.inputs()[i].second.id();
      if (operands[i]) residuals_[id] = operands[i];
      else linear_[static_cast<std::size_t>(id.node)] = true;
    }
    compute_residuals();
  }

  Values run(const Values& cotangents) {
    for (std::size_t i = 0; i < cotangents.size(); ++i) add(program_.outputs()[i].second.id(), cotangents[i]);
    for (std::int32_t id : nodes_ | std::views::reverse)
      if (linear_[static_cast<std::size_t>(id)]) step(id);
    Values results;
    for (const auto& [input, value] : program_.inputs()) results.push_back(is_linear(value.id()) ? take(value.id()) : Value());
    return results;
  }

 private:
  bool is_linear(ValueId id) const { return linear_[static_cast<std::size_t>(id.node)]; }

  /// Runs the nodes that do not depend on linear inputs, as far as linear ones read them.
  void compute_residuals() {
    std::vector<bool> wanted(program_.size(), false);
    for (std::int32_t id : nodes_)
      for (ValueId operand : program_.node(id).operands)
        if (is_linear(operand)) linear_[static_cast<std::size_t>(id)] = true;
    for (std::int32_t id : nodes_ | std::views::reverse) {
      const auto i = static_cast<std::size_t>(id);
      for (ValueId operand : program_.node(id).operands)
        if ((linear_[i] || wanted[i]) && !is_linear(operand)) wanted[static_cast<std::size_t>(operand.node)] = true;
    }
    for (std::int32_t id : nodes_)
      if (wanted[static_cast<std::size_t>(id)]) copy(id);
  }

  void copy(std::int32_t id) {
    const Node& node = program_.node(id);
    Values operands;
    for (ValueId operand : node.operands) operands.push_back(residuals_.at(operand));
    const Values results = emit(target_, *node.op, node.attrs, operands);
    for (std::size_t r = 0; r < results.size(); ++r) residuals_[{id, static_cast<std::int32_t>(r)}] = results[r];
  }

  void add(ValueId id, Value cotangent) {
    if (!cotangent || !is_linear(id)) return;
    const Type& wanted = program_.type(id);
    if (!(cotangent.type() == wanted))
      fail_internal("rlx.{}: its cotangent is {}, the value {}", program_.node(id.node).op->name, cotangent.type().to_string(),
                    wanted.to_string());
    Value& total = cotangents_[id];
    total = sum_of(total, cotangent);
  }

  Value take(ValueId id) const {
    auto it = cotangents_.find(id);
    return it == cotangents_.end() ? Value() : it->second;
  }

  void step(std::int32_t id) {
    const Node& node = program_.node(id);
    Values dy;
    bool any = false;
    for (std::size_t r = 0; r < node.results.size(); ++r) {
      dy.push_back(take({id, static_cast<std::int32_t>(r)}));
      any = any || dy.back();
    }
    if (!any) return;
    Values x;
    std::vector<bool> linear;
    for (ValueId operand : node.operands) {
      linear.push_back(is_linear(operand));
      // A linear operand has no value here: rules may ask for its type only.
      x.push_back(linear.back() ? Value(&program_.data(), operand) : residuals_.at(operand));
    }
    const Values dx = transpose_node(node, x, linear, dy);
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (!linear[i] || i >= dx.size() || !dx[i]) continue;
      if (&dx[i].graph() == &program_.data())
        fail_internal("rlx.{}: not linear in operand {}, but its tangent reaches it", node.op->name, i);
      add(node.operands[i], dx[i]);
    }
  }

  Values transpose_node(const Node& node, const Values& x, const std::vector<bool>& linear, const Values& dy) {
    const OpDef& op = *node.op;
    if (op.transpose) return op.transpose(node.attrs, x, linear, dy);
    if (op.kind == OpKind::scalar && op.jvp) return transpose_scalar(node, x, linear, dy[0]);
    if (op.body) return transpose_body(node, x, linear, dy);
    fail("rlx.{}: not differentiable in reverse mode: it has no transpose", op.name);
  }

  /// A scalar op acts on each element alone, so its transpose is its derivative in the direction of the cotangent.
  static Values transpose_scalar(const Node& node, const Values& x, const std::vector<bool>& linear, Value dy) {
    Values dx(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (!linear[i]) continue;
      Values direction(x.size());
      direction[i] = dy;
      dx[i] = node.op->jvp(node.attrs, x, Values(1), direction)[0];
    }
    return dx;
  }

  Values transpose_body(const Node& node, const Values& x, const std::vector<bool>& linear, const Values& dy) {
    const Graph body =
        trace_region(std::string(node.op->name), nullptr, types_of(x), [&](const Values& in) { return node.op->body(node.attrs, in); });
    Values residuals = x;
    for (std::size_t i = 0; i < x.size(); ++i)
      if (linear[i]) residuals[i] = {};
    return transpose_linear(target_, body, residuals, dy);
  }

  GraphData& target_;
  const Graph& program_;
  std::vector<std::int32_t> nodes_;
  std::vector<bool> linear_;  // by node: depends on a linear input
  std::map<ValueId, Value> residuals_, cotangents_;
};

}  // namespace

Values transpose_linear(GraphData& target, const Graph& program, const Values& operands, const Values& cotangents) {
  return Transposition(target, program, operands).run(cotangents);
}

}  // namespace rlx
