#include "backends/gpu/products/block_claim.h"

#include <algorithm>

#include "backends/gpu/products/block_text.h"
#include "kernel/term.h"
#include "lowering/kernels_only/block_kernels.h"
#include "lowering/products/strided_view.h"
#include "passes/run_invariant.h"

namespace rlx::gpu {
namespace {

constexpr std::int64_t few = 16;  // rows
constexpr BlockForm form_of_few{16, 32, 6, 8}, form_of_many{64, 64, 2, 1}, form_of_hopper{128, 64, 2, 1};

/// What a launch of generated kernels does that no expression of theirs says.
struct BlockWork final : Claimed {
  BlockWork(Dim of_rows, double of_row) : rows(std::move(of_rows)), row(of_row) {}
  double flops(const Graph& /*graph*/, const Bindings& bindings) const override {
    return row * static_cast<double>(rows.evaluate(bindings));
  }
  double unread_bytes(const Graph& /*graph*/, const Bindings& /*bindings*/) const override { return 0; }
  Dim rows;
  double row;
};

/// The weights of a product as rows of bytes; nothing where they lie otherwise.
std::optional<View> rows_of_bytes(const Draft& draft, ValueId weights) {
  Kernel kernel;
  const Dims& shape = draft.graph.type(weights).shape;
  Puller puller(draft.graph, kernel, draft.stored_test());
  const std::vector<Index> at = element_variables(kernel, shape);
  auto view = as_view(kernel, puller.pull(weights, at));
  if (view && !(view->stride(1) == Dim(1))) view.reset();
  return view;
}

/// Each number of x as the upper and the lower half of its bits: numbers of bf16 whose sum it nearly is.
GeneratedKernel halving(const Draft& draft, ValueId x, ValueId halves) {
  Kernel kernel;
  kernel.symbols = draft.symbols;
  const Type& type = draft.graph.type(x);
  const Dim size = type.size();
  kernel.buffers = {{x, type.dtype}, {halves, bf16, true}};
  kernel.loops = {kernel.add_variable(size)};
  const Index at = Index::variable(kernel.loops[0], size);
  Expr load;
  load.kind = Expr::Kind::load;
  load.dtype = type.dtype;
  load.index = at;
  load.last = size - Dim(1);
  const Term loaded(kernel, kernel.add(std::move(load))), number = type.dtype == f32 ? loaded : cast(loaded, f32);
  const Term upper = cast(number, bf16), same = cast(upper, f32);
  const Term lower = cast(select(same == number, 0.0, number - same), bf16);
  kernel.stores.push_back({1, at, upper.id()});
  kernel.stores.push_back({1, at + Index(size), lower.id()});
  return draft.generate(std::move(kernel));
}

class BlockProducts final : public GraphClaim {
 public:
  explicit BlockProducts(Draft& draft) : draft_(draft), blocks_(block_graph(draft.graph)), invariant_(run_invariant_nodes(draft.graph)) {}

  std::optional<Launch> launch(ValueId value) override {
    if (!multiplies_much(value)) return std::nullopt;
    const Node& node = draft_.graph.node(value.node);
    const auto weights = rows_of_bytes(draft_, node.operands[1]);
    return weights ? std::optional(launch_of(node, value, *weights)) : std::nullopt;
  }

 private:
  const Type& type(ValueId v) const { return draft_.graph.type(v); }
  Dim rows_of(const Node& node) const { return *Dim::exact_div(type(node.operands[0]).size(), type(node.operands[0]).shape.back()); }

  /// Of several rows, in matrices for which tiles pay. What runs once has no memory for halves.
  bool multiplies_much(ValueId v) const {
    constexpr std::int64_t least = 32, least_work = 1 << 18;
    const Node& node = draft_.graph.node(v.node);
    if (node.op->name != "block_dot" || !has_block_kernels(draft_.graph, node, draft_.target.caps)) return false;
    if (!draft_.target.caps.multiplies(bf16) || invariant_[static_cast<std::size_t>(v.node)]) return false;
    const std::int64_t rows = rows_of(node).upper(), columns = type(v).shape.back().value(),
                       depth = type(node.operands[0]).shape.back().value();
    return rows > 1 && columns >= least &&
           static_cast<double>(rows) * static_cast<double>(columns) * static_cast<double>(depth) >= least_work;
  }

  Launch launch_of(const Node& node, ValueId value, const View& weights) const {
    const ValueId x = node.operands[0], halves{value.node, 1};
    const Dim rows = rows_of(node);
    const std::int64_t columns = type(value).shape.back().value(), depth = type(x).shape.back().value();
    const bool is_whole = type(x).dtype == bf16;
    const BlockProduct product{*find_block_format(std::get<std::string>(node.attrs[0])),
                               blocks_.tables,
                               is_whole ? x : halves,
                               weights.value,
                               value,
                               type(value).dtype,
                               is_whole ? 1 : 2,
                               rows,
                               columns,
                               depth,
                               weights.offset,
                               weights.stride(0),
                               draft_.symbols};
    Launch launch{Launch::Kind::kernel, "block_dot", {x, weights.value}, {value}};
    launch.claim = "block_dot", launch.node = value, launch.arithmetic = "bf16";
    launch.claimed = std::make_shared<const BlockWork>(rows, 2.0 * static_cast<double>(columns) * static_cast<double>(depth));
    const auto add = [&](GeneratedKernel kernel, std::int64_t least, std::int64_t most) {
      for (const KernelBuffer& buffer : kernel.kernel.buffers)
        if (!buffer.written && !(buffer.value == halves) && std::ranges::find(launch.reads, buffer.value) == launch.reads.end())
          launch.reads.push_back(buffer.value);
      launch.kernels.push_back(std::move(kernel));
      if (least > rows.lower() || most < rows.upper()) launch.kernels.back().only = SizeRange{rows, least, most};
    };
    if (rows.lower() <= 1)
      add(draft_.generate(std::move(block_kernels(blocks_, value.node, draft_.stored_test(), draft_.target.caps)[0].kernel)), 0, 1);
    if (!is_whole) {
      launch.scratch.emplace_back(halves, Type{bf16, {type(x).size() * Dim(2)}});
      add(halving(draft_, x, halves), 2, rows.upper());
    }
    if (rows.lower() <= few) add(block_product_kernel(product, form_of_few), 2, few);
    if (rows.upper() > few)
      add(block_product_kernel(product, draft_.target.caps.multiplies_in_groups ? form_of_hopper : form_of_many), few + 1, rows.upper());
    return launch;
  }

  Draft& draft_;
  const BlockGraph blocks_;
  const std::vector<bool> invariant_;
};

struct BlockProductClaim final : Claim {
  std::unique_ptr<GraphClaim> start(Draft& draft) const override { return std::make_unique<BlockProducts>(draft); }
};

}  // namespace

const Claim& block_product_claim() {
  static const BlockProductClaim claim;
  return claim;
}

}  // namespace rlx::gpu
