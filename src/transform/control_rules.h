#pragma once
#include "ops/control/control.h"
#include "transform/forward.h"

namespace rlx {

/// Derivatives of the ops that have regions: results with tangents, at least one operand having one.
using ControlRule = std::vector<Dual> (*)(GraphData& target, const Attrs& attrs, const std::vector<Dual>& operands, PassMode mode);
/// Null for all other ops.
ControlRule control_rule(const OpDef& op);

std::vector<Dual> differentiate_call(GraphData& target, const Attrs& attrs, const std::vector<Dual>& operands, PassMode mode);
std::vector<Dual> differentiate_cond(GraphData& target, const Attrs& attrs, const std::vector<Dual>& operands, PassMode mode);
std::vector<Dual> differentiate_while(GraphData& target, const Attrs& attrs, const std::vector<Dual>& operands, PassMode mode);
std::vector<Dual> differentiate_scan(GraphData& target, const Attrs& attrs, const std::vector<Dual>& operands, PassMode mode);

/// Which outputs of a region vary when the inputs marked in `active` do.
std::vector<bool> varying_outputs(const Graph& region, const std::vector<bool>& active, PassMode mode);
/// `active` widened until the carry (the first `carries` inputs and outputs) is stable: what a loop's step makes vary is active.
std::vector<bool> stable_carry(const Graph& step, std::size_t carries, std::vector<bool> active, PassMode mode);

std::vector<bool> has_tangent(std::span<const Dual> duals);
/// The values whose mark is set.
Values chosen(std::span<const Value> values, const std::vector<bool>& marks);
std::vector<Type> chosen(std::span<const Type> types, const std::vector<bool>& marks);

/// Takes values from a list one after another.
class Reader {
 public:
  explicit Reader(const Values& values) : values_(values) {}
  Value next() { return values_.at(next_++); }
  Values take(std::size_t count);
  /// One value for each mark: the next of the list where it is set, else null.
  Values spread(const std::vector<bool>& marks);

 private:
  const Values& values_;
  std::size_t next_ = 0;
};

/// How a loop that carries tangents passes its operands: group by group (the carry, what is scanned, constants), each followed by the
/// tangents of its active members.
struct DualLayout {
  std::vector<std::size_t> sizes;
  std::vector<bool> active;  // by operand

  std::vector<bool> active_in(std::size_t group) const;
  /// Operands and tangents, or their types, in that order.
  template <class T>
  std::vector<T> interleave(const std::vector<T>& x, const std::vector<T>& dx) const;
  /// The way back.
  std::vector<Dual> read(const Values& in) const;
};

template <class T>
std::vector<T> DualLayout::interleave(const std::vector<T>& x, const std::vector<T>& dx) const {
  std::vector<T> all;
  std::size_t first = 0;
  for (std::size_t size : sizes) {
    for (std::size_t i = first; i < first + size; ++i) all.push_back(x[i]);
    for (std::size_t i = first; i < first + size; ++i)
      if (active[i]) all.push_back(dx[i]);
    first += size;
  }
  return all;
}

/// The tangents, where those of active operands are not null.
Values with_active_zeros(GraphData& target, const Values& x, Values dx, const std::vector<bool>& active);

/// The graph with scans that compute no results, and carry no sums, that nothing reads: rules give derivatives by all operands, and of
/// these some are wanted.
Graph without_unused_results(const Graph& graph);

}  // namespace rlx
