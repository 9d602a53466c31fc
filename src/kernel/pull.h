#pragma once
#include <functional>
#include <map>
#include <set>

#include "kernel/kernel.h"

namespace rlx {

/// Builds one kernel body by asking values of a graph for an element at an index. Structure ops only rewrite indices; a value that
/// is stored becomes a load. Every (value, index) pair is asked for once.
/// Assumes: a graph of primitives whose unstored values are scalar, structure, loop or address ops of types that kernels can compute.
class Puller {
 public:
  using IsStored = std::function<bool(ValueId)>;
  Puller(const Graph& graph, Kernel& kernel, IsStored is_stored) : graph_(graph), kernel_(kernel), is_stored_(std::move(is_stored)) {}

  /// The expression of element `at` of `value`; `as_body` computes the value even though it is stored (it is what the kernel stores).
  ExprId pull(ValueId value, const std::vector<Index>& at, bool as_body = false);
  /// The values that were computed, not loaded.
  const std::set<ValueId>& computed() const { return computed_; }
  /// True when `value` was computed at another index than those of `places`.
  bool computed_elsewhere(ValueId value, const std::vector<std::vector<Index>>& places) const;
  /// Element `at` of an integer operand for use in an index: see ReadIndex.
  Index read_index(const Node& node, int operand, const std::vector<Index>& at, const std::optional<Dim>& limit);
  /// The slot of the buffer that holds `value`.
  int buffer_of(ValueId value, bool written);

 private:
  ExprId compute(ValueId value, const std::vector<Index>& at);
  ExprId pull_sources(const Node& node, const std::vector<Source>& sources, DType dtype);
  ExprId pull_loop(ValueId value, const Node& node, const std::vector<Index>& at);
  int loop_variable(const Dim& extent, const std::vector<Index>& at, const std::vector<int>& taken);
  std::vector<Type> operand_types(const Node& node) const;

  const Graph& graph_;
  Kernel& kernel_;
  IsStored is_stored_;
  std::set<ValueId> computed_;
  std::vector<std::set<int>> free_;  // variables of the kernel's expressions, as many as were asked for
  std::map<int, int> loop_depth_;    // of the variables of reductions: how many reductions are around
  std::unordered_multimap<std::size_t, std::tuple<ValueId, std::vector<Index>, ExprId>> memo_;
};

}  // namespace rlx
