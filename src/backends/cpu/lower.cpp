#include "backends/cpu/lower.h"

#include <algorithm>
#include <set>

#include "ir/sources.h"
#include "kernel/math.h"

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

/// Work of one element of a scalar op, in simple operations: the transcendental ones are polynomials.
int weight(const Node& node) {
  if (node.op->kind != OpKind::scalar) return 0;
  switch (static_cast<ScalarOp>(node.op->scalar)) {
    case ScalarOp::exp:
    case ScalarOp::expm1:
    case ScalarOp::log:
    case ScalarOp::log1p:
    case ScalarOp::sin:
    case ScalarOp::cos:
    case ScalarOp::tanh:
    case ScalarOp::atan:
    case ScalarOp::erf:
    case ScalarOp::pow: return 16;
    case ScalarOp::div:
    case ScalarOp::rem:
    case ScalarOp::sqrt:
    case ScalarOp::rsqrt: return 4;
    default: return 1;
  }
}

class Lowering {
 public:
  Lowering(const Graph& graph, const LowerOptions& options) : graph_(graph), options_(options) {}

  Program run() {
    find_users();
    store_what_must_be();
    if (options_.claims) claim_products();
    share_expensive_values();
    // A reduction that a kernel would repeat is stored instead, and everything is built again.
    while (!build()) {
    }
    Program program(graph_);
    for (const auto& [name, bound] : graph_.symbols()) program.symbols.push_back(name);
    program.launches = std::move(launches_);
    program.views = std::move(views_);
    return program;
  }

 private:
  bool is_source(ValueId v) const { return is_input(graph_.node(v.node)) || constant_value(graph_.node(v.node)); }
  bool is_stored(ValueId v) const { return is_source(v) || stored_.count(v); }
  Puller::IsStored stored_test() const {
    return [this](ValueId v) { return is_stored(v); };
  }

  void find_users() {
    live_.assign(graph_.size(), false);
    for (const auto& [name, value] : graph_.outputs()) {
      outputs_.insert(value.id());
      live_[static_cast<std::size_t>(value.id().node)] = true;
    }
    for (auto id = static_cast<std::int32_t>(graph_.size()); id-- > 0;) {
      if (!live_[static_cast<std::size_t>(id)]) continue;
      for (ValueId operand : graph_.node(id).operands) {
        live_[static_cast<std::size_t>(operand.node)] = true;
        auto& list = users_[operand];
        if (list.empty() || list.back() != id) list.push_back(id);
      }
    }
    for (auto& [value, list] : users_) std::reverse(list.begin(), list.end());
  }

  void store_what_must_be() {
    for (std::int32_t id = 0; id < static_cast<std::int32_t>(graph_.size()); ++id) {
      if (!live_[static_cast<std::size_t>(id)]) continue;
      const Node& node = graph_.node(id);
      if (is_source({id, 0})) continue;
      const bool generated = can_generate(graph_, node);
      if (generated && options_.fuse) continue;
      for (std::size_t r = 0; r < node.results.size(); ++r) stored_.insert({id, static_cast<std::int32_t>(r)});
      if (generated) continue;
      if (!options_.allow_host)
        fail("no kernel: {}<{}> on cpu: it runs on the host only, and host segments are not allowed", node.op->name,
             node.results[0].to_string());
      host_.insert(id);
      for (ValueId operand : node.operands) stored_.insert(operand);
    }
    for (ValueId v : outputs_) stored_.insert(v);
    must_store_ = stored_;
  }

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
      if (live_[static_cast<std::size_t>(id)] && !host_.count(id) && worth_a_claim({id, 0})) dots.push_back({id, 0});
    for (ValueId dot : dots) stored_.insert(dot);  // operands of later products may be earlier ones
    for (ValueId dot : dots) {
      if (!options_.fuse) {
        products_[dot] = {dot};
        continue;
      }
      const auto must = [this](ValueId v) { return must_store_.count(v) > 0; };
      std::vector<ValueId> region = epilogue_region(graph_, dot, users_, must);
      if (region.empty()) region = {dot};
      // A value that another product ends in, or computes with, stays with that product.
      for (ValueId v : region)
        if (in_region_.count(v)) region = {dot};
      for (ValueId v : region) in_region_.insert(v);
      if (!must_store_.count(dot)) stored_.erase(dot);
      stored_.insert(region.back());
      products_[dot] = region;
    }
    for (auto& [dot, region] : products_) store_blockers(dot);
  }

  /// Stores operands of a product until both are views of stored values.
  void store_blockers(ValueId dot) {
    ValueId blocker;
    while (!as_product(graph_, dot, stored_test(), blocker))
      if (!stored_.insert(blocker).second) fail_internal("lower: the operand {} of a product stays unreadable", blocker.node);
  }

  /// A value that several kernels would compute is stored when computing it costs more than reading it.
  void share_expensive_values() {
    std::map<ValueId, std::set<ValueId>> roots;
    std::map<ValueId, ValueId> region_end;
    for (const auto& [dot, region] : products_)
      for (ValueId v : region) region_end[v] = region.back();
    const auto cost_of = costs();
    for (auto id = static_cast<std::int32_t>(graph_.size()); id-- > 0;) {
      const ValueId v{id, 0};
      if (!live_[static_cast<std::size_t>(id)] || is_source(v) || stored_.count(v)) continue;
      std::set<ValueId> mine;
      for (std::int32_t user : users_[v]) {
        const ValueId u{user, 0};
        if (auto end = region_end.find(u); end != region_end.end()) mine.insert(end->second);
        else if (stored_.count(u)) mine.insert(u);
        else mine.insert(roots[u].begin(), roots[u].end());
      }
      if (mine.size() > 1 && !region_end.count(v) && cost_of[static_cast<std::size_t>(id)] > 6) {
        stored_.insert(v);
        mine = {v};
      }
      roots[v] = std::move(mine);
    }
  }
  /// Operations to compute one element from stored values; a reduction counts as dear.
  std::vector<double> costs() const {
    std::vector<double> cost(graph_.size(), 0);
    for (std::int32_t id = 0; id < static_cast<std::int32_t>(graph_.size()); ++id) {
      const Node& node = graph_.node(id);
      if (is_stored({id, 0})) continue;
      double total = weight(node) + (node.op->loop ? 1000 : 0);
      for (ValueId operand : node.operands) total += cost[static_cast<std::size_t>(operand.node)];
      cost[static_cast<std::size_t>(id)] = total;
    }
    return cost;
  }

  bool build() {
    launches_.clear();
    views_.clear();
    std::map<ValueId, ValueId> product_of_result;
    for (const auto& [dot, region] : products_) product_of_result[region.back()] = dot;
    for (std::int32_t id = 0; id < static_cast<std::int32_t>(graph_.size()); ++id) {
      if (!live_[static_cast<std::size_t>(id)]) continue;
      const ValueId v{id, 0};
      if (host_.count(id)) add_host(id);
      else if (is_source(v) || !stored_.count(v)) continue;
      else if (auto it = product_of_result.find(v); it != product_of_result.end()) {
        if (!add_product(it->second)) return false;
      } else if (!add_kernel(v)) return false;
    }
    return true;
  }

  void add_host(std::int32_t id) {
    const Node& node = graph_.node(id);
    Launch launch{HostLaunch{id}, node.operands, {}};
    for (std::size_t r = 0; r < node.results.size(); ++r) launch.writes.push_back({id, static_cast<std::int32_t>(r)});
    launches_.push_back(std::move(launch));
  }

  void finish(Kernel& kernel) const {
    for (const auto& [name, bound] : graph_.symbols()) kernel.symbols.push_back(name);
    if (kernel.tile) kernel.symbols.emplace_back(tile_stride_symbol);
    merge_loops(kernel);
    expand_math(kernel);
  }
  void add_reads_and_writes(Launch& launch, const Kernel& kernel) const {
    for (const KernelBuffer& buffer : kernel.buffers) (buffer.written ? launch.writes : launch.reads).push_back(buffer.value);
  }

  /// False when values had to be stored first.
  bool store_repeated(const Kernel& kernel) {
    std::map<ValueId, double> total;  // one value may be reduced at several indices
    for (const Recompute& r : recomputation(kernel, graph_)) total[r.value] += r.factor;
    bool fine = true;
    for (const auto& [value, factor] : total)
      if (factor > 1.5 && stored_.insert(value).second) fine = false;
    return fine;
  }

  bool add_kernel(ValueId v) {
    const Type& type = graph_.type(v);
    KernelLaunch launch;
    Kernel& kernel = launch.kernel;
    std::vector<Index> at;
    for (const Dim& extent : type.shape) {
      kernel.loops.push_back(kernel.add_variable(extent));
      at.push_back(Index::variable(kernel.loops.back(), extent));
    }
    Puller puller(graph_, kernel, stored_test());
    const ExprId value = puller.pull(v, at, true);
    const Index position = flatten(at, type.shape);
    if (is_view(kernel, value, position, type)) {
      views_[v] = kernel.buffers[static_cast<std::size_t>(kernel.expr(value).buffer)].value;
      return true;
    }
    kernel.stores.push_back({puller.buffer_of(v, true), position, value});
    if (options_.fuse && !store_repeated(kernel)) return false;
    finish(kernel);
    launch.text = emit_llvm(kernel);
    Launch full{{}, {}, {}};
    add_reads_and_writes(full, kernel);
    full.what = std::move(launch);
    launches_.push_back(std::move(full));
    return true;
  }
  bool is_view(const Kernel& kernel, ExprId value, const Index& position, const Type& type) const {
    const Expr& e = kernel.expr(value);
    return e.kind == Expr::Kind::load && e.index == position && e.dtype == type.dtype &&
           graph_.type(kernel.buffers[static_cast<std::size_t>(e.buffer)].value).size() == type.size();
  }

  bool add_product(ValueId dot) {
    ValueId blocker;
    auto product = as_product(graph_, dot, stored_test(), blocker);
    if (!product) fail_internal("lower: the operand {} of a product is not stored", blocker.node);
    auto& region = products_[dot];
    if (region.size() > 1 && !add_epilogue(graph_, *product, region, stored_test())) {
      for (ValueId v : region) in_region_.erase(v);
      region = {dot};
      stored_.insert(dot);
      return false;
    }
    ProductLaunch launch{std::move(*product), {}, nullptr};
    Launch full{{}, {launch.product.a, launch.product.b}, {}};
    if (launch.product.epilogue) {
      finish(*launch.product.epilogue);
      launch.text = emit_llvm(*launch.product.epilogue);
      for (const KernelBuffer& buffer : launch.product.epilogue->buffers)
        if (!buffer.written && !(buffer.value == dot)) full.reads.push_back(buffer.value);
    }
    full.writes.push_back(launch.product.result);
    full.what = std::move(launch);
    launches_.push_back(std::move(full));
    return true;
  }

  const Graph& graph_;
  const LowerOptions& options_;
  std::vector<bool> live_;
  std::set<ValueId> outputs_, stored_, must_store_, in_region_;
  std::set<std::int32_t> host_;
  std::map<ValueId, std::vector<std::int32_t>> users_;
  std::map<ValueId, std::vector<ValueId>> products_;
  std::vector<Launch> launches_;
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
