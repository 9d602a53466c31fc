#include "backends/cpu/product/claim.h"

#include <algorithm>

#include "backends/cpu/machine/level_of.h"
#include "backends/cpu/product/packing.h"
#include "backends/cpu/product/product_kernels.h"
#include "backends/cpu/product/step.h"
#include "lowering/products/axis_parts.h"
#include "lowering/products/epilogue.h"
#include "passes/channels_last.h"
#include "passes/conv_as_dot.h"

namespace rlx::cpu {

template <class Way>
void list_parts(Way& way, Of<Way, Product>& p) {
  way("element", p.element), way("float left", p.float_left), way("dot", p.dot), way("result", p.result), way("a", p.a), way("b", p.b);
  way("a offset", p.a_offset), way("b offset", p.b_offset), way("c offset", p.c_offset), way("batch", p.batch), way("rows", p.rows);
  way("columns", p.columns), way("depth", p.depth), way("row axes", p.row_axes), way("depth axes", p.depth_axes);
  way("b by tables", p.b_by_tables), way("prologue", p.prologue), way("epilogue", p.epilogue);
  way("prologue by columns", p.prologue_by_columns), way("winograd", p.winograd), way("dots", p.dots);
  way("epilogue by columns", p.epilogue_by_columns), way("packed", p.packed);
}

namespace {

const RegisterWork<Product> product_work("product");

class Products final : public GraphClaim {
 public:
  explicit Products(Draft& draft) : draft_(draft), graph_(draft.graph), cut_(draft.cut), level_(level_of(draft.target)) { claim(); }

  void store_operands() override {
    for (const auto& [dot, region] : regions_) prepare_operands(dot);
  }
  std::vector<std::vector<ValueId>> regions() const override {
    std::vector<std::vector<ValueId>> all;
    for (const auto& [dot, region] : regions_) all.push_back(region);
    return all;
  }
  void build() override {
    for (auto& [dot, region] : regions_) build_product(dot, region);
  }
  std::optional<Launch> launch(ValueId value) override {
    const auto product = built_.find(value);
    return product == built_.end() ? std::nullopt : std::optional(launch_of(product->second));
  }

 private:
  /// The kernels inside a product take the sizes of its tile as well as all symbols.
  bool fuses() const { return draft_.fuse && draft_.symbols.size() + epilogue_tile_sizes <= most_epilogue_arguments; }

  /// Whether the panels of a product are of a type without prologues; where its sums are wider than its result, an epilogue rounds them.
  bool packs_narrow(ValueId dot) const {
    const auto narrow = narrow_operands(graph_, dot, level_);
    return (narrow && narrow->widens_left) || (graph_.type(dot).dtype == bf16 && draft_.target.caps.multiplies(bf16));
  }

  /// Whether it multiplies so much, and of such types, that a claim may be worth it.
  bool multiplies_much(ValueId v) const {
    const Node& node = graph_.node(v.node);
    if (!cut_.live(v.node) || cut_.on_host(v.node) || node.op->name != "dot") return false;
    const DType t = node.results[0].dtype;
    if (t != f32 && t != f64 && !(packs_narrow(v) && (t == i32 || fuses()))) return false;
    const auto& contracted = std::get<std::vector<std::int64_t>>(node.attrs[0]);
    double depth = 1;
    for (std::int64_t axis : contracted) depth *= static_cast<double>(graph_.type(node.operands[0]).dim(axis).upper());
    double elements = 1;
    for (const Dim& dim : node.results[0].shape) elements *= static_cast<double>(often(dim));
    return depth >= 4 && depth * elements >= 4096;
  }

  /// How much an extent may be in some run. A low bound of a symbol must not choose the order of sums: a prompt in short pieces has the
  /// bits of the whole one.
  static std::int64_t often(const Dim& dim) {
    constexpr std::int64_t some = 16;
    return dim.is_static() ? dim.value() : std::max(dim.upper(), some);
  }

  bool worth_a_claim(ValueId v) const {
    const Node& node = graph_.node(v.node);
    const bool may_be_weights = draft_.inner || draft_.invariant[static_cast<std::size_t>(node.operands[1].node)];
    return packs_narrow(v) || !is_bound_by_reading(graph_, node, may_be_weights);
  }

  /// What a dot that is left to a kernel reads again for each row or column of the other operand is computed once, unless that is little.
  void store_operands_of_kernel(ValueId dot) {
    const Node& node = graph_.node(dot.node);
    for (std::size_t side = 0; side < 2; ++side) {
      const ValueId operand = node.operands[side];
      const bool read_once = free_elements(graph_, node, 1 - side) == Dim(1);
      if (!read_once && !cut_.is_stored(operand) && !is_little_work(graph_, operand, draft_.stored_test())) cut_.store(operand);
    }
  }

  void claim() {
    std::vector<ValueId> dots, generated;
    for (std::int32_t id = 0; id < static_cast<std::int32_t>(graph_.size()); ++id)
      if (multiplies_much({id, 0})) (worth_a_claim({id, 0}) ? dots : generated).push_back({id, 0});
    for (ValueId dot : dots) cut_.store(dot);  // operands of later products may be earlier ones
    for (ValueId dot : generated) store_operands_of_kernel(dot);
    std::set<ValueId> narrow, in_region;  // narrow: what products read in place of their widened operands
    for (ValueId dot : dots)
      if (const auto operands = narrow_operands(graph_, dot, level_))
        narrow.insert(operands->values.begin() + (operands->widens_left ? 0 : 1), operands->values.end());
    for (ValueId dot : dots) {
      std::vector<ValueId> region;
      const auto must = [&](ValueId v) { return cut_.must_store(v) || narrow.count(v) > 0; };
      // A value that another product ends in, or computes with, stays with that product.
      const auto taken = [&](ValueId v) { return in_region.count(v) > 0; };
      if (fuses()) region = epilogue_region(graph_, dot, cut_.users(), must, taken);
      leave_moves(region);
      if (region.empty()) region = {dot};
      in_region.insert(region.begin(), region.end());
      if (region.size() > 1) cut_.keep_inside(dot);
      cut_.store(region.back());
      regions_[dot] = region;
    }
  }

  /// Whoever reads its operands in any order of the axes finds each in its own, side by side.
  void leave_moves(std::vector<ValueId>& region) const {
    const auto users = region.empty() ? cut_.users().end() : cut_.users().find(region.back());
    if (users == cut_.users().end()) return;
    for (std::int32_t user : users->second)
      if (!draft_.reads_moved.count(user)) return;
    const auto is_move = [&](ValueId v, ValueId of) {
      return graph_.node(v.node).op->sources && graph_.node(v.node).operands == std::vector{of};
    };
    while (region.size() > 1 && !cut_.must_store(region.back()) && is_move(region.back(), region[region.size() - 2])) region.pop_back();
  }

  /// Operands are views of stored values; the left one may also be computed while it is packed.
  void prepare_operands(ValueId dot) {
    ValueId blocker;
    while (!as_product(graph_, dot, level_, readable(dot), blocker)) {
      const std::vector<ValueId>& operands = graph_.node(dot.node).operands;
      const bool only_left = fuses() && !packs_narrow(dot) && blocker == operands[0] && !(blocker == operands[1]) &&
                             cut_.users().at(blocker).size() == 1 && !has_few_columns(graph_, graph_.node(dot.node));
      std::optional<std::set<ValueId>> statistics;
      if (only_left && !computed_left_.count(dot)) statistics = statistics_below(graph_, blocker, draft_.stored_test());
      if (statistics) {
        for (ValueId v : *statistics) cut_.store(v);
        computed_left_[dot] = blocker;
      } else if (!cut_.store(blocker)) {
        fail_internal("product: its operand {} stays unreadable", blocker.node);
      }
    }
  }
  Puller::IsStored readable(ValueId dot) const {
    const auto left = computed_left_.find(dot);
    return [this, computed = left == computed_left_.end() ? ValueId{-1, 0} : left->second](ValueId v) {
      return v == computed || cut_.is_stored(v);
    };
  }

  void build_product(ValueId dot, std::vector<ValueId>& region) {
    if (auto left = computed_left_.find(dot); left != computed_left_.end() && cut_.is_stored(left->second)) computed_left_.erase(left);
    ValueId blocker;
    auto product = as_product(graph_, dot, level_, readable(dot), blocker);
    if (!product) fail_internal("product: its operand {} is not stored", blocker.node);
    const auto is_stored = draft_.stored_test();
    if (computed_left_.count(dot) && !add_prologue(graph_, *product, draft_.symbols, is_stored)) cut_.store(product->a);
    if (region.size() > 1 && !add_epilogue(graph_, *product, region, draft_.symbols, is_stored)) {
      region = {dot};
      cut_.store(dot);
    }
    if (!product->epilogue && product->sum() != graph_.type(dot).dtype && !add_epilogue(graph_, *product, {dot}, draft_.symbols, is_stored))
      fail_internal("product: the result {} cannot be rounded", dot.node);
    product->winograd = suits_winograd(*product);
    product->dots = suits_dots(*product, level_);
    built_.emplace(region.back(), std::move(*product));
  }

  /// The right operand is packed once, where it stays and does not lie as it is best read; adds what is read of it.
  void pack_right(Product& product, std::vector<ValueId>& reads) {
    const bool stays = draft_.may_stay(product.b) && has_fixed_layout(product), columns_lie_so = product.depth.b_stride == Dim(1);
    product.dots = product.dots && (columns_lie_so || stays);
    // Several columns may share the sets of a cache as they lie.
    const bool packs = stays && draft_.is_of_runs(product.result) && !(product.dots && columns_lie_so && product.columns.extent == Dim(1));
    product.winograd = product.winograd && packs;
    if (!packs) return reads.push_back(product.b);
    PackedRight right = packed_right(product);
    const Type type{u8, {packed_bytes(right, level_)}};
    product.packed = draft_.pack(product.b, product.dot, type, packing_of(std::move(right)), reads);
  }

  Launch launch_of(Product& product) {
    std::vector<ValueId> reads;
    pack_right(product, reads);
    if (!product.prologue) reads.push_back(product.a);
    std::vector<GeneratedKernel> kernels;
    for (Kernel& part : product.parts) {
      for (const KernelBuffer& buffer : part.buffers)
        if (!buffer.written && !(buffer.value == product.dot)) reads.push_back(buffer.value);
      kernels.push_back(draft_.generate(std::move(part)));
    }
    product.parts.clear();
    const ValueId dot = product.dot, result = product.result;
    const std::string arithmetic = product.element == i8 ? "int8" : std::string(name(product.float_left ? f32 : product.element));
    const bool prologue = product.prologue.has_value(), epilogue = product.epilogue.has_value();
    Launch launch = launch_with("gemm", dot, std::move(reads), {result}, std::move(product));
    if (prologue) launch.name = kernels.front().short_name() + "+" + launch.name;
    if (epilogue) launch.name += "+" + kernels.back().short_name(), launch.storing = static_cast<int>(kernels.size()) - 1;
    launch.kernels = std::move(kernels);
    launch.arithmetic = arithmetic;
    return launch;
  }

  Draft& draft_;
  const Graph& graph_;
  Cut& cut_;
  const CpuLevel level_;
  std::map<ValueId, std::vector<ValueId>> regions_;  // by the dot: what the claim computes
  std::map<ValueId, ValueId> computed_left_;         // by the dot: its left operand, where a prologue computes it
  std::map<ValueId, Product> built_;                 // by the value that is stored
};

struct ProductClaim final : Claim {
  Graph prepare(const Graph& graph, const Caps& /*caps*/) const override { return convs_as_dots(channels_last(graph)); }
  std::unique_ptr<GraphClaim> start(Draft& draft) const override { return std::make_unique<Products>(draft); }
};

}  // namespace

const Claim& product_claim() {
  static const ProductClaim claim;
  return claim;
}

}  // namespace rlx::cpu
