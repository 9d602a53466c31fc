#include "lowering/lower_to_kernels.h"

#include "lowering/lowering.h"

namespace rlx {
namespace {

class KernelLowering final : public Lowering {
 public:
  KernelLowering(const Graph& graph, const TargetDevice& target, bool fuse, std::vector<std::string> symbols)
      : Lowering(
            graph, target, fuse, std::move(symbols), [&graph](const Node& node) { return kernel_computes(graph, node); },
            [](const Node& node, std::size_t operand) { return node.operands[operand]; }) {}

 private:
  void claim() override { cut_.share({}); }
  bool is_claimed(ValueId /*value*/) const override { return false; }
  std::optional<Launch> claimed_launch(std::int32_t /*node*/) override { return std::nullopt; }
  Program lower_region(const Graph& region) const override { return KernelLowering(region, target_, fuse_, symbols_).run(); }
};

}  // namespace

Program lower_to_kernels(const Graph& graph, const TargetDevice& target, bool fuse) {
  std::vector<std::string> symbols;
  for (const auto& [name, bound] : graph.symbols()) symbols.push_back(name);
  return KernelLowering(graph, target, fuse, std::move(symbols)).run();
}

}  // namespace rlx
