#include "backends/cpu/lower.h"

#include <algorithm>

#include "backends/cpu/attention/run.h"
#include "backends/cpu/product_kernels.h"
#include "backends/cpu/quantized/run.h"
#include "backends/cpu/routines/run.h"
#include "backends/cpu/run_product.h"
#include "backends/cpu/state_update.h"
#include "ir/rebuild.h"
#include "lowering/lowering.h"
#include "passes/run_invariant.h"

namespace rlx::cpu {
namespace {

/// None without claims: the op's own evaluation is then what computes it.
const Routine* routine_of(const Graph& graph, const Node& node, const LowerOptions& options) {
  return options.claims ? routine_for(graph, node) : nullptr;
}

/// Of those that are left: claimed.
bool is_composite(const Node& node) { return node.op->kind == OpKind::composite; }

class CpuLowering final : public Lowering {
 public:
  /// `inner`: of a region, whose operands may turn out to be weights, which are packed once.
  CpuLowering(const Graph& graph, const LowerOptions& options, std::vector<std::string> symbols, bool inner = false)
      : Lowering(
            graph, options.target, options.fuse, std::move(symbols),
            [&](const Node& node) { return is_composite(node) ? !routine_of(graph, node, options) : kernel_computes(graph, node); },
            [&](const Node& node, std::size_t operand) { return read_operand(graph, node, routine_of(graph, node, options), operand); }),
        inner_(inner),
        options_(options) {}

 private:
  void claim() override {
    if (options_.claims) refuse_unknown();
    claim_attentions();
    claim_block_dots();
    claim_state_updates([](const StateUpdate&) { return true; });
    if (options_.claims) claim_products();
    for (const auto& [op, region] : attentions_) view_operands(region);
    for (const auto& [dot, region] : products_) prepare_operands(dot);
    std::vector<std::vector<ValueId>> regions;
    for (const auto* claims : {&products_, &attentions_})
      for (const auto& [op, region] : *claims) regions.push_back(region);
    cut_.share(regions);
    for (const auto& [op, region] : attentions_) built_attentions_.emplace(region.back(), view_operands(region));
    for (auto& [dot, region] : products_) build_product(dot, region);
  }

  const Routine* routine_for(const Node& node) const { return routine_of(graph_, node, options_); }

  void refuse_unknown() const {
    for (std::int32_t id = 0; id < static_cast<std::int32_t>(graph_.size()); ++id)
      if (cut_.on_host(id) && !has_regions(graph_.node(id)) && !views_.count({id, 0}) && !routine_for(graph_.node(id)))
        fail("no kernel: {}<{}> on cpu", graph_.node(id).op->name, graph_.node(id).results[0].to_string());
  }

  // -- attention: the composites of the graph, which only claims compute

  void claim_attentions() {
    for (std::int32_t id = 0; id < static_cast<std::int32_t>(graph_.size()); ++id) {
      if (!cut_.live(id) || graph_.node(id).op->name != "attention") continue;
      const ValueId op{id, 0};
      attentions_[op] = attention_region(graph_, op, cut_.users(), [this](ValueId v) { return cut_.must_store(v); });
      cut_.store(attentions_[op].back());
    }
  }

  /// Operands that are no views of stored values are stored.
  Attention view_operands(const std::vector<ValueId>& region) {
    ValueId blocker;
    while (true) {
      if (auto attention = as_attention(graph_, region, stored_test(), blocker)) return std::move(*attention);
      if (!cut_.store(blocker)) fail_internal("lower: the operand {} of attention stays unreadable", blocker.node);
    }
  }

  // -- products with weights in blocks, which read and write whole values

  void claim_block_dots() {
    for (std::int32_t id = 0; id < static_cast<std::int32_t>(graph_.size()); ++id) {
      if (!cut_.live(id) || !is_block_dot(graph_.node(id))) continue;
      cut_.store({id, 0});
      for (ValueId operand : graph_.node(id).operands) cut_.store(operand);
    }
  }

  // -- products

  /// The kernels inside a product take the sizes of its tile as well as all symbols.
  bool fuse_products() const { return fuse_ && symbols_.size() + epilogue_tile_sizes <= most_epilogue_arguments; }

  /// Whether the panels of a product are of a type without prologues; where its sums are wider than its result, an epilogue rounds them.
  bool packs_narrow(ValueId dot) const {
    const auto narrow = narrow_operands(graph_, dot, level_);
    return (narrow && narrow->widens_left) || (graph_.type(dot).dtype == bf16 && options_.target.caps.multiplies(bf16));
  }

  /// Whether it multiplies so much, and of such types, that a claim may be worth it.
  bool multiplies_much(ValueId v) const {
    const Node& node = graph_.node(v.node);
    if (!cut_.live(v.node) || cut_.on_host(v.node) || node.op->name != "dot") return false;
    const DType t = node.results[0].dtype;
    if (t != f32 && t != f64 && !(packs_narrow(v) && (t == i32 || fuse_products()))) return false;
    const auto& contracted = std::get<std::vector<std::int64_t>>(node.attrs[0]);
    double depth = 1;
    for (std::int64_t axis : contracted) depth *= static_cast<double>(graph_.type(node.operands[0]).dim(axis).upper());
    return depth >= 4 && depth * static_cast<double>(node.results[0].size().upper()) >= 4096;
  }

  bool worth_a_claim(ValueId v) const {
    const Node& node = graph_.node(v.node);
    const bool may_be_weights = inner_ || invariant_[static_cast<std::size_t>(node.operands[1].node)];
    return packs_narrow(v) || !is_bound_by_reading(graph_, node, may_be_weights);
  }

  /// What a dot that is left to a kernel reads again for each row or column of the other operand is computed once, unless that is little.
  void store_operands(ValueId dot) {
    const Node& node = graph_.node(dot.node);
    for (std::size_t side = 0; side < 2; ++side) {
      const ValueId operand = node.operands[side];
      const bool read_once = free_elements(graph_, node, 1 - side) == Dim(1);
      if (!read_once && !cut_.is_stored(operand) && !is_little_work(graph_, operand, stored_test())) cut_.store(operand);
    }
  }

  void claim_products() {
    std::vector<ValueId> dots, generated;
    for (std::int32_t id = 0; id < static_cast<std::int32_t>(graph_.size()); ++id)
      if (multiplies_much({id, 0})) (worth_a_claim({id, 0}) ? dots : generated).push_back({id, 0});
    for (ValueId dot : dots) cut_.store(dot);  // operands of later products may be earlier ones
    for (ValueId dot : generated) store_operands(dot);
    std::set<ValueId> narrow, in_region;  // narrow: what products read in place of their widened operands
    for (ValueId dot : dots)
      if (const auto operands = narrow_operands(graph_, dot, level_))
        narrow.insert(operands->values.begin() + (operands->widens_left ? 0 : 1), operands->values.end());
    for (ValueId dot : dots) {
      std::vector<ValueId> region;
      const auto must = [&](ValueId v) { return cut_.must_store(v) || narrow.count(v) > 0; };
      // A value that another product ends in, or computes with, stays with that product.
      const auto taken = [&](ValueId v) { return in_region.count(v) > 0; };
      if (fuse_products()) region = epilogue_region(graph_, dot, cut_.users(), must, taken);
      leave_moves(region);
      if (region.empty()) region = {dot};
      in_region.insert(region.begin(), region.end());
      if (region.size() > 1) cut_.keep_inside(dot);
      cut_.store(region.back());
      products_[dot] = region;
    }
  }

  /// Attention reads its operands in any order of the axes, so a product before it stores them in its own, side by side.
  void leave_moves(std::vector<ValueId>& region) const {
    const auto users = region.empty() ? cut_.users().end() : cut_.users().find(region.back());
    if (users == cut_.users().end()) return;
    for (std::int32_t user : users->second)
      if (!attentions_.count({user, 0})) return;
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
      const bool only_left = fuse_products() && !packs_narrow(dot) && blocker == operands[0] && !(blocker == operands[1]) &&
                             cut_.users().at(blocker).size() == 1 && !has_few_columns(graph_, graph_.node(dot.node));
      std::optional<std::set<ValueId>> statistics;
      if (only_left && !computed_left_.count(dot)) statistics = statistics_below(graph_, blocker, stored_test());
      if (statistics) {
        for (ValueId v : *statistics) cut_.store(v);
        computed_left_[dot] = blocker;
      } else if (!cut_.store(blocker)) {
        fail_internal("lower: the operand {} of a product stays unreadable", blocker.node);
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
    if (!product) fail_internal("lower: the operand {} of a product is not stored", blocker.node);
    if (computed_left_.count(dot) && !add_prologue(graph_, *product, symbols_, stored_test())) cut_.store(product->a);
    if (region.size() > 1 && !add_epilogue(graph_, *product, region, symbols_, stored_test())) {
      region = {dot};
      cut_.store(dot);
    }
    if (!product->epilogue && product->sum() != graph_.type(dot).dtype && !add_epilogue(graph_, *product, {dot}, symbols_, stored_test()))
      fail_internal("lower: the product {} cannot be rounded", dot.node);
    product->winograd = suits_winograd(*product);
    product->dots = suits_dots(*product, level_);
    built_products_.emplace(region.back(), std::move(*product));
  }

  // -- the program

  bool is_claimed(ValueId v) const override {
    return built_products_.count(v) || built_attentions_.count(v) || is_block_dot(graph_.node(v.node)) || in_update_.count(v) ||
           is_copied(v);
  }

  /// A concat of many stored values, or where kernels would be too long: its runs are copied.
  bool is_copied(ValueId v) const {
    constexpr std::size_t most_choices = 8;
    const Node& node = graph_.node(v.node);
    if (node.op->name != "concat" || !fuse_ || !routine_for(node)) return false;
    if (node.operands.size() <= most_choices && !cut_.was_too_long(v)) return false;
    return std::ranges::all_of(node.operands, [&](ValueId operand) { return cut_.is_stored(operand); });
  }

  std::optional<Launch> claimed_launch(std::int32_t id) override {
    const ValueId v{id, 0};
    if (const auto update = updates_.find(v); update != updates_.end()) return update_launch(update->second);
    if (!cut_.live(id) || views_.count(v)) return std::nullopt;
    if (cut_.on_host(id) ? routine_for(graph_.node(id)) != nullptr : cut_.is_stored(v) && !cut_.is_source(v) && is_copied(v))
      return routine_launch(id);
    if (const auto product = built_products_.find(v); product != built_products_.end()) return product_launch(product->second);
    if (const auto attention = built_attentions_.find(v); attention != built_attentions_.end()) return attention_launch(attention->second);
    if (is_block_dot(graph_.node(id)) && cut_.is_stored(v)) return block_dot_launch(as_block_dot(graph_, v));
    return std::nullopt;
  }

  Program lower_region(const Graph& region) const override { return CpuLowering(region, options_, symbols_, true).run(); }

  /// `node`: what the claim computes; none where it writes a state.
  template <class T>
  static Launch launch_of(std::string claim, ValueId node, std::vector<ValueId> reads, std::vector<ValueId> writes, T what) {
    Launch launch{Launch::Kind::claim, claim, std::move(reads), std::move(writes), {}, std::move(claim), node};
    launch.claimed = std::make_shared<const WorkOf<T>>(std::move(what));
    return launch;
  }

  static Launch update_launch(StateUpdate update) {
    std::vector<ValueId> reads = update.operands();
    reads.insert(reads.begin(), update.state);
    const ValueId result = update.result;
    return launch_of("state_update", {-1, 0}, std::move(reads), {result}, std::move(update));
  }

  Launch routine_launch(std::int32_t id) const {
    const Node& node = graph_.node(id);
    const Routine* const routine = routine_for(node);
    std::vector<ValueId> reads, writes;
    for (std::size_t i = 0; i < node.operands.size(); ++i) reads.push_back(read_operand(graph_, node, routine, i));
    for (std::size_t r = 0; r < node.results.size(); ++r) writes.push_back({id, static_cast<std::int32_t>(r)});
    Launch launch = launch_of(std::string(node.op->name), {id, 0}, std::move(reads), std::move(writes), RoutineWork{routine, id});
    launch.replaced = routine->in_place_of;
    return launch;
  }

  Launch block_dot_launch(BlockDot dot) const {
    std::vector<ValueId> reads{dot.x, dot.blocks};
    if (dot.experts) reads.push_back(*dot.experts);
    const ValueId node = dot.node;
    const std::string claim = (dot.experts ? "grouped_block_dot " : "block_dot ") + dot.type;
    const std::string arithmetic = dot.kernel(level_) ? "int8" : "f32";
    Launch launch = launch_of(claim, node, std::move(reads), {node}, std::move(dot));
    launch.arithmetic = arithmetic;
    return launch;
  }

  Launch product_launch(Product& product) const {
    std::vector<ValueId> reads{product.b};
    if (!product.prologue) reads.push_back(product.a);
    std::vector<GeneratedKernel> kernels;
    for (Kernel& part : product.parts) {
      for (const KernelBuffer& buffer : part.buffers)
        if (!buffer.written && !(buffer.value == product.dot)) reads.push_back(buffer.value);
      kernels.push_back(generate(std::move(part)));
    }
    product.parts.clear();
    const ValueId dot = product.dot, result = product.result;
    const std::string arithmetic = product.element == i8 ? "int8" : std::string(name(product.float_left ? f32 : product.element));
    const bool prologue = product.prologue.has_value(), epilogue = product.epilogue.has_value();
    Launch launch = launch_of("gemm", dot, std::move(reads), {result}, std::move(product));
    if (prologue) launch.name = kernels.front().short_name() + "+" + launch.name;
    if (epilogue) launch.name += "+" + kernels.back().short_name(), launch.storing = static_cast<int>(kernels.size()) - 1;
    launch.kernels = std::move(kernels);
    launch.arithmetic = arithmetic;
    return launch;
  }

  Launch attention_launch(Attention attention) const {
    std::vector<ValueId> reads{attention.q.value, attention.k.value, attention.v.value};
    for (const auto* operand : {&attention.mask, &attention.bias, &attention.positions})
      if (*operand) reads.push_back((*operand)->value);
    for (const auto* scales : {&attention.k_scales, &attention.v_scales})
      if (*scales) reads.push_back((*scales)->operand.value);
    for (const auto* operand : {&attention.k, &attention.v})
      if (operand->pages) reads.push_back(operand->pages->value);
    const ValueId node = attention.node, result = attention.result;
    Launch launch = launch_of("attention", node, std::move(reads), {result}, std::move(attention));
    launch.arithmetic = graph_.type(result).dtype == bf16 && multiplies_bf16(level_) ? "bf16" : "f32";
    return launch;
  }

  const bool inner_;
  const LowerOptions& options_;
  const CpuLevel level_ = level_of(options_.target);
  std::map<ValueId, std::vector<ValueId>> products_;           // by the dot: what the claim computes
  std::vector<bool> invariant_ = run_invariant_nodes(graph_);  // by node: the same in every run
  std::map<ValueId, ValueId> computed_left_;                   // by the dot: its left operand, where a prologue computes it
  std::map<ValueId, Product> built_products_;                  // by the value that is stored
  std::map<ValueId, std::vector<ValueId>> attentions_;         // by the op: it and the moves behind it
  std::map<ValueId, Attention> built_attentions_;              // by the value that is stored
};

}  // namespace

Program lower(const Graph& graph, const LowerOptions& options) { return CpuLowering(graph, options, symbol_names(graph)).run(); }

}  // namespace rlx::cpu
