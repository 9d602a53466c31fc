#include "backends/cpu/lower.h"

#include <algorithm>

#include "backends/cpu/outputs.h"
#include "kernel/math.h"
#include "kernel/simplify.h"
#include "passes/cut.h"

namespace rlx::cpu {

ValueId Program::root(ValueId value) const {
  for (auto it = views.find(value); it != views.end(); it = views.find(value)) value = it->second;
  return value;
}

bool can_generate(const Graph& graph, const Node& node) {
  if (node.results.size() != 1 || !rlx::can_generate(node.results[0].dtype)) return false;
  for (ValueId operand : node.operands)
    if (!rlx::can_generate(graph.type(operand).dtype)) return false;
  return node.op->kind == OpKind::scalar || node.op->sources || node.op->loop || node.op->address;
}

namespace {

class Lowering {
 public:
  Lowering(const Graph& graph, const LowerOptions& options)
      : graph_(graph),
        options_(options),
        cut_(graph, [&graph](const Node& node) { return cpu::can_generate(graph, node); }, on_chip_row, options.fuse) {}

  Program run() {
    if (!options_.allow_host) refuse_host();
    if (options_.claims) claim_products();
    std::vector<std::vector<ValueId>> regions;
    for (const auto& [dot, region] : products_) regions.push_back(region);
    cut_.share(regions);
    for (auto& [dot, region] : products_) build_product(dot, region);
    while (!build_kernels()) {
    }
    return program();
  }

 private:
  Puller::IsStored stored_test() const {
    return [this](ValueId v) { return cut_.is_stored(v); };
  }

  void refuse_host() const {
    for (std::int32_t id = 0; id < static_cast<std::int32_t>(graph_.size()); ++id)
      if (cut_.on_host(id))
        fail("no kernel: {}<{}> on cpu: it runs on the host only, and host segments are not allowed", graph_.node(id).op->name,
             graph_.node(id).results[0].to_string());
  }

  // -- products

  bool worth_a_claim(ValueId v) const {
    const Node& node = graph_.node(v.node);
    if (node.op->name != "dot" || (node.results[0].dtype != f32 && node.results[0].dtype != f64)) return false;
    const auto& contracted = std::get<std::vector<std::int64_t>>(node.attrs[0]);
    double depth = 1;
    for (std::int64_t axis : contracted) depth *= static_cast<double>(graph_.type(node.operands[0]).dim(axis).upper());
    return depth >= 4 && depth * static_cast<double>(node.results[0].size().upper()) >= 4096;
  }

  void claim_products() {
    std::vector<ValueId> dots;
    for (std::int32_t id = 0; id < static_cast<std::int32_t>(graph_.size()); ++id)
      if (cut_.live(id) && !cut_.on_host(id) && worth_a_claim({id, 0})) dots.push_back({id, 0});
    for (ValueId dot : dots) cut_.store(dot);  // operands of later products may be earlier ones
    std::set<ValueId> in_region;
    for (ValueId dot : dots) {
      std::vector<ValueId> region;
      const auto must = [this](ValueId v) { return cut_.must_store(v); };
      if (options_.fuse) region = epilogue_region(graph_, dot, cut_.users(), must);
      // A value that another product ends in, or computes with, stays with that product.
      const bool taken = std::any_of(region.begin(), region.end(), [&](ValueId v) { return in_region.count(v) > 0; });
      if (region.empty() || taken) region = {dot};
      in_region.insert(region.begin(), region.end());
      if (region.size() > 1) cut_.keep_inside(dot);
      cut_.store(region.back());
      products_[dot] = region;
    }
    for (auto& [dot, region] : products_) store_blockers(dot);
  }

  /// Stores operands of a product until both are views of stored values.
  void store_blockers(ValueId dot) {
    ValueId blocker;
    while (!as_product(graph_, dot, stored_test(), blocker))
      if (!cut_.store(blocker)) fail_internal("lower: the operand {} of a product stays unreadable", blocker.node);
  }

  void build_product(ValueId dot, std::vector<ValueId>& region) {
    ValueId blocker;
    auto product = as_product(graph_, dot, stored_test(), blocker);
    if (!product) fail_internal("lower: the operand {} of a product is not stored", blocker.node);
    if (region.size() > 1 && !add_epilogue(graph_, *product, region, stored_test())) {
      region = {dot};
      cut_.store(dot);
    }
    built_products_.emplace(region.back(), std::move(*product));
  }

  // -- kernels

  /// Builds the kernels that are missing. False when one would repeat a reduction: it is stored instead, and what computed it is
  /// built again.
  bool build_kernels() {
    for (std::int32_t id = 0; id < static_cast<std::int32_t>(graph_.size()); ++id) {
      const ValueId v{id, 0};
      if (!cut_.live(id) || cut_.on_host(id) || cut_.is_source(v) || !cut_.is_stored(v)) continue;
      if (built_products_.count(v) || views_.count(v) || kernels_.count(v)) continue;
      auto built = build_outputs(graph_, {v}, stored_test());
      const KernelStore& store = built->kernel.stores[0];
      if (is_view(built->kernel, store, graph_.type(v))) {
        views_[v] = built->kernel.buffers[static_cast<std::size_t>(built->kernel.expr(store.value).buffer)].value;
        continue;
      }
      if (options_.fuse && !store_repeated(built->kernel)) return false;
      kernels_.emplace(v, std::move(*built));
    }
    return true;
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

  bool is_view(const Kernel& kernel, const KernelStore& store, const Type& type) const {
    const Expr& e = kernel.expr(store.value);
    return e.kind == Expr::Kind::load && e.index == store.index && e.dtype == type.dtype &&
           graph_.type(kernel.buffers[static_cast<std::size_t>(e.buffer)].value).size() == type.size();
  }

  // -- the program

  Program program() {
    std::vector<Unit> units;
    for (std::int32_t id = 0; id < static_cast<std::int32_t>(graph_.size()); ++id) {
      const ValueId v{id, 0};
      if (!cut_.live(id)) continue;
      if (cut_.on_host(id)) units.push_back(host_unit(id));
      else if (auto product = built_products_.find(v); product != built_products_.end()) units.push_back(product_unit(product->second));
      else if (auto kernel = kernels_.find(v); kernel != kernels_.end()) units.push_back({std::move(kernel->second), {}});
    }
    Program result(graph_);
    for (const auto& [name, bound] : graph_.symbols()) result.symbols.push_back(name);
    result.views = std::move(views_);
    if (options_.fuse) {
      const auto root = [&](ValueId v) { return result.root(v); };
      std::set<ValueId> outputs;
      for (const auto& [name, value] : graph_.outputs()) outputs.insert(root(value.id()));
      units = merge_outputs(graph_, std::move(units), stored_test(), root, outputs);
    }
    for (Unit& unit : units)
      result.launches.push_back(unit.outputs ? kernel_launch(std::move(unit.outputs->kernel)) : std::move(unit.launch));
    return result;
  }

  Unit host_unit(std::int32_t id) const {
    const Node& node = graph_.node(id);
    Launch launch{HostLaunch{id}, node.operands, {}};
    for (std::size_t r = 0; r < node.results.size(); ++r) launch.writes.push_back({id, static_cast<std::int32_t>(r)});
    return {std::nullopt, std::move(launch)};
  }

  Unit product_unit(Product& product) const {
    Launch full{{}, {product.a, product.b}, {product.result}};
    ProductLaunch launch{std::move(product), {}, nullptr};
    if (launch.product.epilogue) {
      finish(*launch.product.epilogue);
      launch.text = emit_llvm(*launch.product.epilogue);
      for (const KernelBuffer& buffer : launch.product.epilogue->buffers)
        if (!buffer.written && !(buffer.value == launch.product.dot)) full.reads.push_back(buffer.value);
    }
    full.what = std::move(launch);
    return {std::nullopt, std::move(full)};
  }

  Launch kernel_launch(Kernel kernel) const {
    finish(kernel);
    Launch full{{}, {}, {}};
    for (const KernelBuffer& buffer : kernel.buffers) (buffer.written ? full.writes : full.reads).push_back(buffer.value);
    KernelText text = emit_llvm(kernel);
    full.what = KernelLaunch{std::move(kernel), std::move(text)};
    return full;
  }

  void finish(Kernel& kernel) const {
    for (const auto& [name, bound] : graph_.symbols()) kernel.symbols.push_back(name);
    if (kernel.tile) kernel.symbols.emplace_back(tile_stride_symbol);
    merge_loops(kernel);
    simplify(kernel);
    expand_math(kernel);
  }

  const Graph& graph_;
  const LowerOptions& options_;
  Cut cut_;
  std::map<ValueId, std::vector<ValueId>> products_;  // by the dot: what the claim computes
  std::map<ValueId, Product> built_products_;         // by the value that is stored
  std::map<ValueId, Outputs> kernels_;
  std::map<ValueId, ValueId> views_;
};

}  // namespace

std::string Launch::name() const {
  if (const auto* kernel = std::get_if<KernelLaunch>(&what)) return kernel->text.name.substr(0, 9);
  if (const auto* product = std::get_if<ProductLaunch>(&what))
    return product->text.name.empty() ? "gemm" : "gemm+" + product->text.name.substr(0, 9);
  return "host";
}

Program lower(const Graph& graph, const LowerOptions& options) { return Lowering(graph, options).run(); }

}  // namespace rlx::cpu
