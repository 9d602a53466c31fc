#pragma once
#include "lowering/outputs.h"
#include "lowering/state_update.h"
#include "lowering/target.h"
#include "passes/cut.h"

namespace rlx {

/// The names of a graph's symbols, in order.
std::vector<std::string> symbol_names(const Graph& graph);

/// True when a kernel can compute the node.
bool kernel_computes(const Graph& graph, const Node& node);

/// From a graph of primitives, and of composites that the target's claims take, to a program: which values are stored, a kernel for each,
/// what the host computes, regions. The target says what its claims compute.
class Lowering {
 public:
  Lowering(const Lowering&) = delete;
  Lowering& operator=(const Lowering&) = delete;
  virtual ~Lowering() = default;

  Program run();

 protected:
  /// `can_generate`, `host_reads`: see Cut. `symbols`: of the whole graph, as a region may use more than its operands show.
  Lowering(const Graph& graph, const TargetDevice& target, bool fuse, std::vector<std::string> symbols,
           const std::function<bool(const Node&)>& can_generate, const Cut::HostReads& host_reads)
      : graph_(graph),
        target_(target),
        fuse_(fuse),
        symbols_(std::move(symbols)),
        cut_(graph, can_generate, host_reads, on_chip_row, fuse) {}

  /// Stores what claims read and write, and keeps inside what they compute.
  virtual void claim() = 0;
  /// Whether a stored value is the business of a claim.
  virtual bool is_claimed(ValueId value) const = 0;
  /// That of a claim which has its results at this node, if there is one.
  virtual std::optional<Launch> claimed_launch(std::int32_t node) = 0;
  virtual Program lower_region(const Graph& region) const = 0;

  /// Takes the states that are updated where they lie, of those for which `takes` holds: their operands are stored, and the result of each
  /// is a view of its state.
  void claim_state_updates(const std::function<bool(const StateUpdate&)>& takes);

  Puller::IsStored stored_test() const {
    return [this](ValueId v) { return cut_.is_stored(v); };
  }
  /// Simplifies a kernel and prints it for the target.
  GeneratedKernel generate(Kernel kernel) const;

  const Graph& graph_;
  const TargetDevice& target_;
  const bool fuse_;
  const std::vector<std::string> symbols_;
  Cut cut_;
  std::map<ValueId, ValueId> views_;
  std::map<ValueId, StateUpdate> updates_;  // by their results
  std::set<ValueId> in_update_;             // values that are the state on its way

 private:
  void share_bytes();
  bool build_kernels();
  bool store_repeated(const Kernel& kernel);
  std::optional<ValueId> copied(const Kernel& kernel, const Type& type) const;
  Program program();
  std::vector<Unit> units();
  Launch host_launch(std::int32_t id) const;
  Launch kernel_launch(OutputKernel outputs) const;
  void lower_regions(Program& result) const;

  std::map<ValueId, OutputKernel> kernels_;
};

}  // namespace rlx
