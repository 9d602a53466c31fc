#include "backends/gpu/products/block_claim.h"

#include <algorithm>

#include "backends/gpu/products/block_text.h"
#include "kernel/term.h"
#include "lowering/kernels_only/block_kernels.h"
#include "lowering/products/strided_view.h"
#include "lowering/program_file/program_parts.h"
#include "passes/run_invariant.h"

namespace rlx::gpu {
namespace {

constexpr std::int64_t few = 16;  // rows
constexpr BlockForm form_of_few{16, 32, 6, 8}, form_of_many{64, 64, 2, 1}, form_of_hopper{128, 64, 2, 1};

/// What a launch of generated kernels does that no expression of theirs says.
struct BlockWork final : Claimed {
  BlockWork() = default;
  BlockWork(Dim of_rows, double of_row) : rows(std::move(of_rows)), row(of_row) {}
  double flops(const Graph& /*graph*/, const Bindings& bindings) const override {
    return row * static_cast<double>(rows.evaluate(bindings));
  }
  double unread_bytes(const Graph& /*graph*/, const Bindings& /*bindings*/) const override { return 0; }
  std::string_view kind() const override { return "tiles of blocks"; }
  void write(ProgramWriter& way) const override { list_parts(way, *this); }
  template <class Way>
  friend void list_parts(Way& way, Of<Way, BlockWork>& work) {
    way("rows", work.rows);
    way("row", work.row);
  }
  Dim rows = 0;
  double row = 0;
};

const RegisterClaimed block_work("tiles of blocks", [](ProgramReader& way) -> std::shared_ptr<const Claimed> {
  auto work = std::make_shared<BlockWork>();
  list_parts(way, *work);
  return work;
});

/// The weights of a product as rows of bytes; nothing where they lie otherwise.
std::optional<View> rows_of_bytes(const Draft& draft, ValueId weights) {
  Kernel kernel;
  const Dims& shape = draft.graph.type(weights).shape;
  Puller puller(draft.graph, kernel, draft.stored_test());
  const std::vector<Index> at = element_variables(kernel, shape);
  auto view = as_view(kernel, puller.pull(weights, at));
  if (view && !(view->stride(static_cast<int>(shape.size()) - 1) == Dim(1))) view.reset();
  return view;
}

/// Each number of x as the upper and the lower half of its bits: numbers of bf16 whose sum it nearly is. `sorted`: the rows of x, in the
/// order in which they are stored. Numbers of bf16 are upper halves.
GeneratedKernel halving(const Draft& draft, ValueId x, ValueId halves, const std::optional<BlockMatrices>& matrices) {
  Kernel kernel;
  const Type& type = draft.graph.type(x);
  const Dim size = type.size(), depth = type.shape.back(), rows = *Dim::exact_div(size, depth);
  kernel.buffers = {{x, type.dtype}, {halves, bf16, true}};
  kernel.loops = {kernel.add_variable(rows), kernel.add_variable(depth)};
  const auto load = [&](int buffer, DType dtype, const Index& at, const Dim& count) {
    Expr e;
    e.kind = Expr::Kind::load;
    e.dtype = dtype;
    e.buffer = buffer;
    e.index = at;
    e.last = count - Dim(1);
    return Term(kernel, kernel.add(std::move(e)));
  };
  const Index row = Index::variable(kernel.loops[0], rows), k = Index::variable(kernel.loops[1], depth), at = row * depth + k;
  Index from = row;
  if (matrices) {
    kernel.buffers.push_back({matrices->sorted, i32});
    from = Index::loaded(cast(load(2, i32, row, rows), i64).id(), rows);
  }
  const Term loaded = load(0, type.dtype, from * depth + k, size), number = type.dtype == f32 ? loaded : cast(loaded, f32);
  const Term upper = cast(number, bf16), same = cast(upper, f32);
  kernel.stores.push_back({1, at, upper.id()});
  if (type.dtype != bf16) kernel.stores.push_back({1, at + Index(size), cast(select(same == number, 0.0, number - same), bf16).id()});
  return draft.generate(std::move(kernel));
}

class BlockProducts final : public GraphClaim {
 public:
  explicit BlockProducts(Draft& draft) : draft_(draft), blocks_(block_graph(draft.graph)), invariant_(run_invariant_nodes(draft.graph)) {}

  std::optional<Launch> launch(ValueId value) override {
    if (!multiplies_much(value)) return std::nullopt;
    const Node& node = draft_.graph.node(value.node);
    const auto weights = rows_of_bytes(draft_, node.operands[1]);
    return weights ? launch_of(node, value, *weights) : std::nullopt;
  }

 private:
  const Type& type(ValueId v) const { return draft_.graph.type(v); }
  Dim rows_of(const Node& node) const { return *Dim::exact_div(type(node.operands[0]).size(), type(node.operands[0]).shape.back()); }

  /// In matrices for which tiles pay. What runs once has no memory for halves.
  bool multiplies_much(ValueId v) const {
    constexpr std::int64_t least = 32, least_work = 1 << 18, most_matrices = 4096;
    const Node& node = draft_.graph.node(v.node);
    if (node.op->name == "decode_blocks" || !has_block_kernels(draft_.graph, node, draft_.target.caps)) return false;
    if (!draft_.target.caps.multiplies(bf16) || invariant_[static_cast<std::size_t>(v.node)]) return false;
    if (is_grouped(node)) {
      const DType number = type(node.operands[2]).dtype;
      if ((number != i32 && number != i64) || type(node.operands[1]).shape[0].value() > most_matrices || rows_of(node).upper() <= few)
        return false;
    }
    const std::int64_t rows = rows_of(node).upper(), columns = type(v).shape.back().value(),
                       depth = type(node.operands[0]).shape.back().value();
    return columns >= least && static_cast<double>(rows) * static_cast<double>(columns) * static_cast<double>(depth) >= least_work;
  }
  static bool is_grouped(const Node& node) { return node.operands.size() == 3; }

  BlockProduct product_of(const Node& node, ValueId value, const View& weights) const {
    const ValueId x = node.operands[0], halves{value.node, 1};
    const bool is_whole = type(x).dtype == bf16;
    BlockProduct product{*find_block_format(std::get<std::string>(node.attrs[0])), blocks_.tables};
    product.left = is_whole && !is_grouped(node) ? x : halves, product.blocks = weights.value, product.result = value;
    product.dtype = type(value).dtype, product.pieces = is_whole ? 1 : 2;
    product.rows = rows_of(node), product.columns = type(value).shape.back().value(), product.depth = type(x).shape.back().value();
    const int row = is_grouped(node) ? 1 : 0;
    product.offset = weights.offset, product.stride = weights.stride(row), product.symbols = draft_.symbols;
    if (is_grouped(node))
      product.matrices = {
          node.operands[2], ValueId{value.node, 3}, type(node.operands[2]).dtype, product.rows, type(node.operands[1]).shape[0].value(),
          weights.stride(0)};
    return product;
  }

  /// Nothing where all are rows that lanes compute alone.
  std::optional<Launch> launch_of(const Node& node, ValueId value, const View& weights) const {
    const ValueId x = node.operands[0];
    const BlockProduct product = product_of(node, value, weights);
    const Dim& rows = product.rows;
    Launch launch{Launch::Kind::kernel, std::string(node.op->name), {x, weights.value}, {value}};
    launch.claim = node.op->name, launch.node = value, launch.arithmetic = "bf16";
    launch.claimed =
        std::make_shared<const BlockWork>(rows, 2.0 * static_cast<double>(product.columns) * static_cast<double>(product.depth));
    const auto add = [&](GeneratedKernel kernel, std::int64_t least, std::int64_t most) {
      if (least > rows.upper() || most < rows.lower() || least > most) return;
      for (const KernelBuffer& buffer : kernel.kernel.buffers)
        if (!buffer.written && buffer.value.node != value.node && std::ranges::find(launch.reads, buffer.value) == launch.reads.end())
          launch.reads.push_back(buffer.value);
      launch.kernels.push_back(std::move(kernel));
      if (least > rows.lower() || most < rows.upper()) launch.kernels.back().only = SizeRange{rows, least, most};
    };
    // Of one row, lanes that have its blocks alone read them in pieces that are as large as the bounds at which they begin.
    const std::int64_t alone = product.matrices ? few : bound_of_blocks(product) == 16 ? 1 : -1;
    const std::int64_t slices = product.matrices ? 2 * few * product.matrices->count : few, most = rows.upper();
    if (most <= alone) return std::nullopt;
    if (rows.lower() <= alone) add(of_one_row(value), 0, alone);
    if (product.matrices) {
      launch.scratch.emplace_back(product.matrices->sorted, Type{i32, {rows + Dim(product.matrices->count + 1)}});
      add(sorting_kernel(*product.matrices, draft_.symbols), alone + 1, most);
    }
    if (!(product.left == x)) {
      launch.scratch.emplace_back(product.left, Type{bf16, {type(x).size() * Dim(product.pieces)}});
      add(halving(draft_, x, product.left, product.matrices), alone + 1, most);
    }
    const BlockForm& many = draft_.target.caps.multiplies_in_groups ? form_of_hopper : form_of_many;
    add(block_product_kernel(product, form_of_few), alone + 1, std::min(slices, most));
    add(block_product_kernel(product, many), slices + 1, most);
    return launch;
  }
  GeneratedKernel of_one_row(ValueId value) const {
    auto kernels = block_kernels(blocks_, value.node, draft_.stored_test(), draft_.target.caps);
    return draft_.generate(std::move(kernels[0].kernel));
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
