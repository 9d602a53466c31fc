#pragma once
#include <map>
#include <span>
#include <vector>

#include "ir/op.h"

namespace rlx {

/// A value with its tangent; a null tangent is zero.
struct Dual {
  Value primal, tangent;
};

/// forward: tangents are values like any other.
/// reverse: tangents live in a child graph that holds only what is linear in them, ready to be transposed. Ops bring their reverse
/// rule (a composite's vjp, the backward pass of a scan) where they have one.
enum class PassMode : std::uint8_t { forward, reverse };

/// Runs nodes of `source` again in `target` on values with tangents: each primal gets its tangent. When source and target are one
/// graph, nodes without tangents are left as they are.
class ForwardPass {
 public:
  ForwardPass(GraphData& source, GraphData& target, PassMode mode) : source_(source), target_(target), mode_(mode) {}

  void bind(ValueId id, Dual dual) { duals_[id] = dual; }
  /// The node results in `known` are not computed again: only their tangents are.
  void reuse(std::map<ValueId, Value> known) { known_ = std::move(known); }
  void run(std::span<const std::int32_t> nodes);
  Dual at(ValueId id) const;

 private:
  void step(std::int32_t id);
  void store(std::int32_t id, const std::vector<Dual>& results);

  GraphData& source_;
  GraphData& target_;
  PassMode mode_;
  std::map<ValueId, Dual> duals_;
  std::map<ValueId, Value> known_;
};

/// The outputs of a whole graph, or region, on operands with tangents.
std::vector<Dual> push_forward(GraphData& target, const Graph& graph, std::span<const Dual> operands, PassMode mode);

/// The derivative of one op: results with tangents. Throws Error `rlx.<op>: not differentiable: <reason>`.
std::vector<Dual> differentiate(GraphData& target, const OpDef& op, const Attrs& attrs, std::span<const Dual> operands, PassMode mode);

Values primals_of(std::span<const Dual> duals);
Values tangents_of(std::span<const Dual> duals);
std::vector<Dual> zip_duals(const Values& primals, const Values& tangents);

}  // namespace rlx
