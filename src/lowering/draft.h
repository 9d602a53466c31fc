#pragma once
#include <unordered_map>

#include "kernel/pull.h"
#include "lowering/program.h"
#include "lowering/target.h"
#include "passes/cut.h"
#include "passes/run_invariant.h"

namespace rlx {

/// The texts of kernels, each printed once: those of a model's layers differ in the values that they read alone.
class KernelTexts {
 public:
  const KernelText& of(Kernel kernel, const TargetDevice& target);

 private:
  struct Known {
    Kernel kernel;
    KernelText text;
  };
  std::unordered_multimap<std::size_t, Known> known_;  // by code_hash
};

/// A graph on its way to a program, as claims see it and change it.
struct Draft {
  const Graph& graph;
  const TargetDevice& target;
  const bool fuse;
  const bool inner;                         // of a region, whose operands may turn out to be weights, which are packed once
  const std::vector<std::string> symbols;   // of the whole graph, as a region may use more than its operands show
  const std::set<ValueId> slices;           // of a scan's step: its inputs and results that begin anywhere in an array of them
  Cut cut;                                  // which values are stored
  std::map<ValueId, ValueId> views = {};    // values that share the bytes of another stored value
  std::set<ValueId> inside = {};            // values on the way to what a claim computes: nobody else computes them, stored or not
  std::set<std::int32_t> claimed = {};      // dots that a claim multiplies, which stores of their operands what it needs
  std::set<std::int32_t> reads_moved = {};  // nodes that read their operands in any order of the axes
  std::vector<Launch> packings = {};        // see pack

  const std::vector<bool> invariant = run_invariant_nodes(graph);
  mutable KernelTexts texts = {};

  Puller::IsStored stored_test() const {
    return [&cut = cut](ValueId v) { return cut.is_stored(v); };
  }
  /// Whether the bytes of a stored value may stay as they are from run to run.
  bool may_stay(ValueId value) const;
  /// Whether the bytes of a stored value begin where 16 bytes do.
  bool begins_aligned(ValueId value) const;
  /// Whether runs compute a node, and not what is prepared for them.
  bool is_of_runs(ValueId value) const { return inner || !invariant[static_cast<std::size_t>(value.node)]; }
  /// Adds a launch that packs `value`, which may stay, for whoever computes `reader`. What it reads of the two comes into `reads`.
  ValueId pack(ValueId value, ValueId reader, const Type& type, std::shared_ptr<const Claimed> claimed, std::vector<ValueId>& reads);
  /// Simplifies a kernel and prints it for the target.
  GeneratedKernel generate(Kernel kernel) const;
};

}  // namespace rlx
