#include "backends/gpu/attention/claim.h"

#include "backends/gpu/attention/kernels.h"
#include "lowering/attention/view_parts.h"
#include "lowering/program_file/program_parts.h"

namespace rlx::gpu {
namespace {

bool takes(const Graph& graph, const Node& node) {
  if (node.op->name != "attention") return false;
  const AttentionOperands operands(node);
  const DType dtype = graph.type(operands.q).dtype;
  if ((dtype != f32 && dtype != bf16 && dtype != f16) || graph.type(operands.k).dtype != dtype || graph.type(operands.v).dtype != dtype)
    return false;
  const auto is_position = [&](ValueId v) { return graph.type(v).dtype == i32 || graph.type(v).dtype == i64; };
  const auto fits = [&](ValueId v) {
    const Dim& features = graph.type(v).shape.back();
    return features.is_static() && features.value() <= most_features;
  };
  return (!operands.bias || graph.type(*operands.bias).dtype == f32) && (!operands.positions || is_position(*operands.positions)) &&
         fits(operands.q) && fits(operands.v);
}

/// What a launch of generated kernels does that no expression of theirs says.
struct AttentionWork final : Claimed {
  explicit AttentionWork(AttentionViews of) : attention(std::move(of)) {}
  double flops(const Graph& graph, const Bindings& bindings) const override { return attention.flops(graph, bindings); }
  double unread_bytes(const Graph& /*graph*/, const Bindings& /*bindings*/) const override { return 0; }
  std::string_view kind() const override { return "attention of groups"; }
  void write(ProgramWriter& way) const override { list_parts(way, attention); }
  AttentionViews attention;
};

const RegisterClaimed attention_work("attention of groups", [](ProgramReader& way) -> std::shared_ptr<const Claimed> {
  AttentionViews attention;
  list_parts(way, attention);
  return std::make_shared<const AttentionWork>(std::move(attention));
});

Launch launch_of(const Draft& draft, const AttentionViews& attention) {
  Launch launch{Launch::Kind::kernel, "attention", attention.reads(), {attention.result}};
  add_attention_kernels(draft, attention, launch);
  launch.claim = "attention", launch.node = attention.node;
  launch.claimed = std::make_shared<const AttentionWork>(attention);
  return launch;
}

struct AttentionClaim final : Claim {
  bool takes(const Graph& graph, const Node& node, const Caps& /*caps*/) const override { return gpu::takes(graph, node); }
  bool reads_views() const override { return true; }
  std::unique_ptr<GraphClaim> start(Draft& draft) const override {
    return std::make_unique<AttentionClaimed>(draft, gpu::takes, launch_of);
  }
};

}  // namespace

const Claim& attention_claim() {
  static const AttentionClaim claim;
  return claim;
}

}  // namespace rlx::gpu
