#include "lowering/lowering.h"

#include <algorithm>

#include "ir/rebuild.h"
#include "kernel/math/math.h"
#include "kernel/simplify.h"
#include "kernel/starts.h"
#include "lowering/large_results.h"
#include "lowering/parts.h"
#include "ops/scalar/reinterpret.h"

namespace rlx {

std::vector<std::string> symbol_names(const Graph& graph) {
  std::vector<std::string> names;
  for (const auto& [name, bound] : graph.symbols()) names.push_back(name);
  return names;
}

bool kernel_computes(const Graph& graph, const Node& node) {
  if (node.results.size() != 1 || !can_generate(node.results[0].dtype)) return false;
  for (ValueId operand : node.operands)
    if (!can_generate(graph.type(operand).dtype)) return false;
  return node.op->kind == OpKind::scalar || node.op->sources || node.op->loop || node.op->address;
}

Program Lowering::run() {
  share_bytes();
  claim();
  while (!build_kernels()) {
  }
  return program();
}

void Lowering::claim_state_updates(const std::function<bool(const StateUpdate&)>& takes) {
  for (StateUpdate& update : state_updates(graph_, cut_.users())) {
    if (!takes(update)) continue;
    for (ValueId operand : update.operands()) cut_.store(operand);
    in_update_.insert(update.chain.begin(), update.chain.end());
    cut_.store(update.result);
    views_[update.result] = update.state;
    updates_.emplace(update.result, std::move(update));
  }
}

/// Bytes read as another type are the same memory. Such a node is stored with its operand, as those of the host are.
void Lowering::share_bytes() {
  for (std::int32_t id = 0; id < static_cast<std::int32_t>(graph_.size()); ++id)
    if (cut_.on_host(id) && is_reinterpretation(graph_.node(id))) views_[{id, 0}] = graph_.node(id).operands[0];
}

/// Builds the kernels that are missing. False when one would repeat a reduction: it is stored instead, and what computed it is
/// built again.
bool Lowering::build_kernels() {
  for (std::int32_t id = 0; id < static_cast<std::int32_t>(graph_.size()); ++id) {
    const ValueId v{id, 0};
    if (!cut_.live(id) || cut_.on_host(id) || cut_.is_source(v) || !cut_.is_stored(v)) continue;
    if (views_.count(v) || kernels_.count(v) || is_claimed(v)) continue;
    auto built = build_outputs(graph_, {v}, stored_test());
    if (const auto source = copied(built->kernel, graph_.type(v))) {
      views_[v] = *source;
      continue;
    }
    if (fuse_ && !store_repeated(built->kernel)) return false;
    kernels_.emplace(v, std::move(*built));
  }
  return true;
}

/// False when values had to be stored first.
bool Lowering::store_repeated(const Kernel& kernel) {
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
std::optional<ValueId> Lowering::copied(const Kernel& kernel, const Type& type) const {
  const int buffer = kernel.expr(kernel.stores[0].value).buffer;
  for (const KernelStore& store : kernel.stores) {
    const Expr& e = kernel.expr(store.value);
    if (e.kind != Expr::Kind::load || !(e.index == store.index) || e.dtype != type.dtype || e.buffer != buffer) return std::nullopt;
  }
  const ValueId source = kernel.buffers[static_cast<std::size_t>(buffer)].value;
  return graph_.type(source).size() == type.size() ? std::optional(source) : std::nullopt;
}

std::vector<Unit> Lowering::units() {
  std::vector<Unit> units;
  for (std::int32_t id = 0; id < static_cast<std::int32_t>(graph_.size()); ++id) {
    const ValueId v{id, 0};
    if (auto launch = claimed_launch(id)) units.push_back({std::nullopt, std::move(*launch)});
    else if (!cut_.live(id) || views_.count(v)) continue;
    else if (cut_.on_host(id)) units.push_back({std::nullopt, host_launch(id)});
    else if (auto kernel = kernels_.find(v); kernel != kernels_.end()) units.push_back({std::move(kernel->second), {}});
  }
  return units;
}

Program Lowering::program() {
  std::vector<Unit> units = this->units();
  Program result(graph_);
  result.symbols = symbols_;
  result.views = std::move(views_);
  if (fuse_) {
    const auto root = [&](ValueId v) { return result.root(v); };
    std::set<ValueId> outputs;
    for (const auto& [name, value] : graph_.outputs()) outputs.insert(root(value.id()));
    units = merge_outputs(graph_, std::move(units), stored_test(), root, outputs);
  }
  for (Unit& unit : units) result.launches.push_back(unit.outputs ? kernel_launch(std::move(*unit.outputs)) : std::move(unit.launch));
  lower_regions(result);
  return result;
}

void Lowering::lower_regions(Program& result) const {
  for (std::int32_t id = 0; id < static_cast<std::int32_t>(graph_.size()); ++id)
    for (const Attr& attr : cut_.on_host(id) ? graph_.node(id).attrs : Attrs{})
      if (const auto* region = std::get_if<Region>(&attr); region && *region && !result.regions.count(region->get()))
        result.regions[region->get()] = std::make_shared<Program>(lower_region(**region));
}

Launch Lowering::host_launch(std::int32_t id) const {
  const Node& node = graph_.node(id);
  Launch launch{has_regions(node) ? Launch::Kind::control : Launch::Kind::host, std::string(node.op->name), node.operands, {}};
  launch.node = {id, 0};
  for (std::size_t r = 0; r < node.results.size(); ++r) launch.writes.push_back({id, static_cast<std::int32_t>(r)});
  return launch;
}

Launch Lowering::kernel_launch(OutputKernel outputs) const {
  std::vector<Kernel> kernels;
  if (fuse_) kernels = split_at_guards(graph_, outputs, stored_test());
  Launch launch;
  for (const KernelBuffer& buffer : outputs.kernel.buffers) (buffer.written ? launch.writes : launch.reads).push_back(buffer.value);
  if (kernels.empty()) kernels.push_back(std::move(outputs.kernel));
  for (Kernel& kernel : kernels) launch.kernels.push_back(generate(std::move(kernel)));
  launch.name = launch.kernels[0].short_name();
  launch.storing = launch.kernels.size() == 1 ? 0 : -1;
  return launch;
}

GeneratedKernel Lowering::generate(Kernel kernel) const {
  if (!kernel.tile) kernel.symbols = symbols_;
  merge_loops(kernel);
  simplify(kernel);
  expand_math(kernel);
  mark_large_results(kernel, graph_, target_.caps.past_caches_bytes);
  std::vector<std::int64_t> first = first_elements(kernel);
  KernelText text = target_.print(counted_from(kernel, first), target_.caps);
  return {std::move(kernel), std::move(text), nullptr, std::move(first)};
}

}  // namespace rlx
