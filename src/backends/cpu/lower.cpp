#include "backends/cpu/lower.h"

#include <algorithm>

#include "backends/cpu/large_results.h"
#include "backends/cpu/outputs.h"
#include "backends/cpu/parts.h"
#include "backends/cpu/product_kernels.h"
#include "ir/rebuild.h"
#include "kernel/math/math.h"
#include "kernel/simplify.h"
#include "kernel/starts.h"
#include "ops/scalar/reinterpret.h"
#include "passes/cut.h"
#include "passes/run_invariant.h"

namespace rlx::cpu {

bool can_generate(const Graph& graph, const Node& node) {
  if (node.results.size() != 1 || !rlx::can_generate(node.results[0].dtype)) return false;
  for (ValueId operand : node.operands)
    if (!rlx::can_generate(graph.type(operand).dtype)) return false;
  return node.op->kind == OpKind::scalar || node.op->sources || node.op->loop || node.op->address;
}

namespace {

class Lowering {
 public:
  /// `inner`: of a region, whose operands may turn out to be weights, which are packed once.
  Lowering(const Graph& graph, const LowerOptions& options, std::vector<std::string> symbols, bool inner = false)
      : inner_(inner),
        graph_(graph),
        options_(options),
        symbols_(std::move(symbols)),
        cut_(
            graph, [this](const Node& node) { return is_composite(node) ? !routine_for(node) : cpu::can_generate(graph_, node); },
            [this](const Node& node, std::size_t operand) { return read_operand(graph_, node, routine_for(node), operand); }, on_chip_row,
            options.fuse) {}

  Program run() {
    share_bytes();
    if (options_.claims) refuse_unknown();
    claim_attentions();
    claim_block_dots();
    claim_state_updates();
    if (options_.claims) claim_products();
    for (const auto& [op, region] : attentions_) view_operands(region);
    for (const auto& [dot, region] : products_) prepare_operands(dot);
    std::vector<std::vector<ValueId>> regions;
    for (const auto* claims : {&products_, &attentions_})
      for (const auto& [op, region] : *claims) regions.push_back(region);
    cut_.share(regions);
    for (const auto& [op, region] : attentions_) built_attentions_.emplace(region.back(), view_operands(region));
    for (auto& [dot, region] : products_) build_product(dot, region);
    while (!build_kernels()) {
    }
    return program();
  }

 private:
  Puller::IsStored stored_test() const {
    return [this](ValueId v) { return cut_.is_stored(v); };
  }

  /// Bytes read as another type are the same memory. Such a node is stored with its operand, as those of the host are.
  void share_bytes() {
    for (std::int32_t id = 0; id < static_cast<std::int32_t>(graph_.size()); ++id)
      if (cut_.on_host(id) && is_reinterpretation(graph_.node(id))) views_[{id, 0}] = graph_.node(id).operands[0];
  }

  /// None without claims: the op's own evaluation is then what computes it.
  const Routine* routine_for(const Node& node) const { return options_.claims ? cpu::routine_for(graph_, node) : nullptr; }

  void refuse_unknown() const {
    for (std::int32_t id = 0; id < static_cast<std::int32_t>(graph_.size()); ++id)
      if (cut_.on_host(id) && !has_regions(graph_.node(id)) && !views_.count({id, 0}) && !routine_for(graph_.node(id)))
        fail("no kernel: {}<{}> on cpu", graph_.node(id).op->name, graph_.node(id).results[0].to_string());
  }

  // -- attention: the composites of the graph, which only claims compute

  static bool is_composite(const Node& node) { return node.op->kind == OpKind::composite; }  // of those that are left: claimed

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

  // -- states that are updated where they lie

  void claim_state_updates() {
    for (StateUpdate& update : state_updates(graph_, cut_.users())) {
      for (ValueId operand : update.operands()) cut_.store(operand);
      for (ValueId value : update.chain) in_update_.insert(value);
      cut_.store(update.result);
      views_[update.result] = update.state;
      updates_.emplace(update.result, std::move(update));
    }
  }

  static Unit update_unit(const StateUpdate& update) {
    Launch launch{update, {update.state}, {update.result}};
    for (ValueId operand : update.operands()) launch.reads.push_back(operand);
    return {std::nullopt, std::move(launch)};
  }

  static Unit block_dot_unit(BlockDot dot) {
    std::vector<ValueId> reads{dot.x, dot.blocks};
    if (dot.experts) reads.push_back(*dot.experts);
    const std::vector<ValueId> writes{dot.node};
    return {std::nullopt, Launch{std::move(dot), reads, writes}};
  }

  // -- products

  /// The kernels inside a product take the sizes of its tile as well as all symbols.
  bool fuse_products() const { return options_.fuse && symbols_.size() + epilogue_tile_sizes <= most_epilogue_arguments; }

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

  // -- kernels

  /// Builds the kernels that are missing. False when one would repeat a reduction: it is stored instead, and what computed it is
  /// built again.
  bool build_kernels() {
    for (std::int32_t id = 0; id < static_cast<std::int32_t>(graph_.size()); ++id) {
      const ValueId v{id, 0};
      if (!cut_.live(id) || cut_.on_host(id) || cut_.is_source(v) || !cut_.is_stored(v)) continue;
      if (built_products_.count(v) || built_attentions_.count(v) || views_.count(v) || kernels_.count(v) || is_block_dot(graph_.node(id)) ||
          in_update_.count(v) || is_copied(v))
        continue;
      auto built = build_outputs(graph_, {v}, stored_test());
      if (const auto source = copied(built->kernel, graph_.type(v))) {
        views_[v] = *source;
        continue;
      }
      if (options_.fuse && !store_repeated(built->kernel)) return false;
      kernels_.emplace(v, std::move(*built));
    }
    return true;
  }

  /// A concat of many stored values, or where kernels would be too long: its runs are copied.
  bool is_copied(ValueId v) const {
    constexpr std::size_t most_choices = 8;
    const Node& node = graph_.node(v.node);
    if (node.op->name != "concat" || !options_.fuse || !routine_for(node)) return false;
    if (node.operands.size() <= most_choices && !cut_.was_too_long(v)) return false;
    return std::ranges::all_of(node.operands, [&](ValueId operand) { return cut_.is_stored(operand); });
  }

  /// False when values had to be stored first.
  bool store_repeated(const Kernel& kernel) {
    std::map<ValueId, double> total;  // one value may be reduced at several indices
    for (const Recompute& r : recomputation(kernel, graph_)) total[r.value] += r.factor;
    bool fine = true;
    for (const auto& [value, factor] : total) {
      if (factor <= 1.5 || !cut_.store(value)) continue;
      fine = false;
      std::erase_if(kernels_, [v = value](const auto& entry) { return entry.second.computed.count(v) > 0; });
    }
    return fine;
  }

  /// The value whose elements the kernel stores again where they lie, all of them; the result is then a view of it.
  std::optional<ValueId> copied(const Kernel& kernel, const Type& type) const {
    const int buffer = kernel.expr(kernel.stores[0].value).buffer;
    for (const KernelStore& store : kernel.stores) {
      const Expr& e = kernel.expr(store.value);
      if (e.kind != Expr::Kind::load || !(e.index == store.index) || e.dtype != type.dtype || e.buffer != buffer) return std::nullopt;
    }
    const ValueId source = kernel.buffers[static_cast<std::size_t>(buffer)].value;
    return graph_.type(source).size() == type.size() ? std::optional(source) : std::nullopt;
  }

  // -- the program

  Program program() {
    std::vector<Unit> units;
    for (std::int32_t id = 0; id < static_cast<std::int32_t>(graph_.size()); ++id) {
      const ValueId v{id, 0};
      if (const auto update = updates_.find(v); update != updates_.end()) units.push_back(update_unit(update->second));
      if (!cut_.live(id) || views_.count(v)) continue;
      if (cut_.on_host(id) || (cut_.is_stored(v) && !cut_.is_source(v) && is_copied(v))) units.push_back(host_unit(id));
      else if (auto product = built_products_.find(v); product != built_products_.end()) units.push_back(product_unit(product->second));
      else if (auto attention = built_attentions_.find(v); attention != built_attentions_.end())
        units.push_back(attention_unit(attention->second));
      else if (is_block_dot(graph_.node(id)) && cut_.is_stored(v)) units.push_back(block_dot_unit(as_block_dot(graph_, v)));
      else if (auto kernel = kernels_.find(v); kernel != kernels_.end()) units.push_back({std::move(kernel->second), {}});
    }
    Program result(graph_);
    result.symbols = symbols_;
    result.views = std::move(views_);
    if (options_.fuse) {
      const auto root = [&](ValueId v) { return result.root(v); };
      std::set<ValueId> outputs;
      for (const auto& [name, value] : graph_.outputs()) outputs.insert(root(value.id()));
      units = merge_outputs(graph_, std::move(units), stored_test(), root, outputs);
    }
    for (Unit& unit : units) result.launches.push_back(unit.outputs ? kernel_launch(std::move(*unit.outputs)) : std::move(unit.launch));
    lower_regions(result);
    return result;
  }

  void lower_regions(Program& result) const {
    for (std::int32_t id = 0; id < static_cast<std::int32_t>(graph_.size()); ++id)
      for (const Attr& attr : cut_.on_host(id) ? graph_.node(id).attrs : Attrs{})
        if (const auto* region = std::get_if<Region>(&attr); region && *region && !result.regions.count(region->get()))
          result.regions[region->get()] = std::make_shared<Program>(Lowering(**region, options_, symbols_, true).run());
  }

  Unit host_unit(std::int32_t id) const {
    const Node& node = graph_.node(id);
    const Routine* routine = routine_for(node);
    Launch launch{HostLaunch{id, node.op->name, routine, has_regions(node)}, {}, {}};
    for (std::size_t i = 0; i < node.operands.size(); ++i) launch.reads.push_back(read_operand(graph_, node, routine, i));
    for (std::size_t r = 0; r < node.results.size(); ++r) launch.writes.push_back({id, static_cast<std::int32_t>(r)});
    return {std::nullopt, std::move(launch)};
  }

  Unit product_unit(Product& product) const {
    Launch launch{{}, {product.b}, {product.result}};
    if (!product.prologue) launch.reads.push_back(product.a);
    launch.what = std::move(product);
    for (GeneratedKernel* kernel : launch.kernels()) {
      for (const KernelBuffer& buffer : kernel->kernel.buffers)
        if (!buffer.written && !(buffer.value == std::get<Product>(launch.what).dot)) launch.reads.push_back(buffer.value);
      finish(*kernel);
    }
    return {std::nullopt, std::move(launch)};
  }

  static Unit attention_unit(const Attention& attention) {
    Launch launch{attention, {attention.q.value, attention.k.value, attention.v.value}, {attention.result}};
    for (const auto* operand : {&attention.mask, &attention.bias, &attention.positions})
      if (*operand) launch.reads.push_back((*operand)->value);
    for (const auto* scales : {&attention.k_scales, &attention.v_scales})
      if (*scales) launch.reads.push_back((*scales)->operand.value);
    for (const auto* operand : {&attention.k, &attention.v})
      if (operand->pages) launch.reads.push_back(operand->pages->value);
    return {std::nullopt, std::move(launch)};
  }

  Launch kernel_launch(Outputs outputs) const {
    std::vector<Kernel> kernels;
    if (options_.fuse) kernels = split_at_guards(graph_, outputs, stored_test());
    Launch launch;
    for (const KernelBuffer& buffer : outputs.kernel.buffers) (buffer.written ? launch.writes : launch.reads).push_back(buffer.value);
    if (kernels.empty()) kernels.push_back(std::move(outputs.kernel));
    launch.what = GeneratedKernel{std::move(kernels[0]), {}, nullptr};
    for (std::size_t i = 1; i < kernels.size(); ++i) launch.edges.push_back({std::move(kernels[i]), {}, nullptr});
    for (GeneratedKernel* kernel : launch.kernels()) finish(*kernel);
    return launch;
  }

  void finish(GeneratedKernel& generated) const {
    Kernel& kernel = generated.kernel;
    if (!kernel.tile) kernel.symbols = symbols_;
    merge_loops(kernel);
    simplify(kernel);
    expand_math(kernel);
    mark_large_results(kernel, graph_, options_.target.caps.past_caches_bytes);
    generated.first = first_elements(kernel);
    generated.text = emit_llvm(counted_from(kernel, generated.first), options_.target.caps.masks);
  }

  const bool inner_;
  const Graph& graph_;
  const LowerOptions& options_;
  const CpuLevel level_ = level_of(options_.target);
  std::vector<std::string> symbols_;  // of the whole graph: a region may use more than its operands show
  Cut cut_;
  std::map<ValueId, std::vector<ValueId>> products_;           // by the dot: what the claim computes
  std::vector<bool> invariant_ = run_invariant_nodes(graph_);  // by node: the same in every run
  std::map<ValueId, ValueId> computed_left_;                   // by the dot: its left operand, where a prologue computes it
  std::map<ValueId, Product> built_products_;                  // by the value that is stored
  std::map<ValueId, std::vector<ValueId>> attentions_;         // by the op: it and the moves behind it
  std::map<ValueId, Attention> built_attentions_;              // by the value that is stored
  std::map<ValueId, Outputs> kernels_;
  std::map<ValueId, ValueId> views_;
  std::map<ValueId, StateUpdate> updates_;  // by their results
  std::set<ValueId> in_update_;             // values that are the state on its way
};

}  // namespace

Program lower(const Graph& graph, const LowerOptions& options) {
  std::vector<std::string> symbols;
  for (const auto& [name, bound] : graph.symbols()) symbols.push_back(name);
  return Lowering(graph, options, std::move(symbols)).run();
}

}  // namespace rlx::cpu
