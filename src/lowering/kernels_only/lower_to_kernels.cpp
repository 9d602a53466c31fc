#include "lowering/kernels_only/lower_to_kernels.h"

#include <algorithm>

#include "ir/op.h"
#include "lowering/kernels_only/window_kernels.h"
#include "lowering/lowering.h"

namespace rlx {
namespace {

bool device_computes(const Graph& graph, const Node& node, const Caps& caps) {
  const auto has = [&](const Type& type) { return caps.has(type.dtype); };
  return kernel_computes(graph, node) && std::ranges::all_of(node.results, has) &&
         std::ranges::all_of(node.operands, [&](ValueId operand) { return has(graph.type(operand)); });
}

class KernelLowering final : public Lowering {
 public:
  KernelLowering(const Graph& graph, const TargetDevice& target, bool fuse, std::vector<std::string> symbols)
      : Lowering(
            graph, target, fuse, std::move(symbols), [&](const Node& node) { return device_computes(graph, node, target.caps); },
            [](const Node& node, std::size_t operand) { return node.operands[operand]; }) {}

 private:
  void claim() override {
    claim_state_updates([this](const StateUpdate& update) {
      return has_window_kernels(graph_, update) && target_.caps.has(graph_.type(update.state).dtype);
    });
    store_factors();
    cut_.share({});
  }

  /// What a product reads many times is computed once, so that its kernel's terms are products of two loads; see ProductBlock.
  void store_factors() {
    constexpr std::int64_t least_work = 4096;  // multiply-adds
    for (std::int32_t id = 0; id < static_cast<std::int32_t>(graph_.size()); ++id) {
      const Node& node = graph_.node(id);
      if (!cut_.live(id) || cut_.on_host(id) || node.op->name != "dot") continue;
      const Dim rows = graph_.type(node.operands[0]).size(), columns = graph_.type(node.operands[1]).size();
      if (std::max(rows.upper(), columns.upper()) < least_work) continue;
      for (ValueId factor : node.operands) cut_.store(moved(factor));
    }
  }
  /// The value that a factor is an arrangement of: the arrangement itself where a reshape of it joins axes that lie apart in that value.
  ValueId moved(ValueId v) const {
    std::optional<ValueId> reshaped;
    while (!cut_.is_stored(v) && graph_.node(v.node).op->sources && graph_.node(v.node).operands.size() == 1) {
      const ValueId from = graph_.node(v.node).operands[0];
      if (graph_.node(v.node).op->name == "reshape") reshaped = from;
      else if (reshaped) return *reshaped;
      v = from;
    }
    return v;
  }

  bool is_claimed(ValueId value) const override { return in_update_.contains(value); }
  std::optional<Launch> claimed_launch(std::int32_t node) override {
    const auto update = updates_.find({node, 0});
    return update == updates_.end() ? std::nullopt : std::optional(update_launch(update->second));
  }

  Launch update_launch(const StateUpdate& update) const {
    Launch launch;
    launch.reads = {update.state};
    launch.writes = {update.result};
    for (Kernel& kernel : window_kernels(graph_, update, stored_test())) {
      for (const KernelBuffer& buffer : kernel.buffers)
        if (!buffer.written) launch.reads.push_back(buffer.value);
      launch.kernels.push_back(generate(std::move(kernel)));
    }
    launch.name = launch.kernels[0].short_name();
    return launch;
  }

  Program lower_region(const Graph& region) const override { return KernelLowering(region, target_, fuse_, symbols_).run(); }
};

}  // namespace

Program lower_to_kernels(const Graph& graph, const TargetDevice& target, bool fuse) {
  return KernelLowering(graph, target, fuse, symbol_names(graph)).run();
}

}  // namespace rlx
