#include "lowering/lowering.h"

#include <algorithm>

#include "base/interruption.h"
#include "ir/rebuild.h"
#include "ir/symbols.h"
#include "lowering/claim.h"
#include "lowering/one_row.h"
#include "lowering/outputs.h"
#include "lowering/split_at_guards.h"
#include "ops/control/control.h"
#include "ops/scalar/reinterpret.h"

namespace rlx {

const Claim* claim_of(const TargetDevice& target, const Graph& graph, const Node& node) {
  const auto found = std::ranges::find_if(target.claims, [&](const Claim* claim) { return claim->takes(graph, node, target.caps); });
  return found == target.claims.end() ? nullptr : *found;
}

namespace {

std::vector<std::string> symbol_names(const Graph& graph) {
  std::vector<std::string> names;
  for (const auto& [name, bound] : all_symbols(graph)) names.push_back(name);
  return names;
}

/// Whether a kernel of the target, or a claim that reads what kernels compute, computes the node; others read stored values.
bool is_fused(const TargetDevice& target, const Graph& graph, const Node& node) {
  if (node.op->kind == OpKind::composite) {
    const Claim* const claim = claim_of(target, graph, node);
    return claim && claim->reads_views();
  }
  const auto has = [&](const Type& type) { return can_generate(type.dtype) && target.caps.has(type.dtype); };
  return node.results.size() == 1 && has(node.results[0]) &&
         std::ranges::all_of(node.operands, [&](ValueId operand) { return has(graph.type(operand)); }) &&
         (node.op->kind == OpKind::scalar || node.op->sources || node.op->loop || node.op->address);
}

ValueId read_operand(const TargetDevice& target, const Graph& graph, const Node& node, std::size_t operand) {
  const Claim* const claim = claim_of(target, graph, node);
  return claim ? claim->read_operand(graph, node, operand) : node.operands[operand];
}

Cut cut_for(const TargetDevice& target, const Graph& graph, bool fuse) {
  return Cut(
      graph, [&](const Node& node) { return is_fused(target, graph, node); },
      [&](const Node& node, std::size_t operand) { return read_operand(target, graph, node, operand); }, on_chip_row, fuse);
}

/// The inputs and results of a region of node `id` that begin anywhere: what a scan moves along its operands and results, and what is
/// itself such a slice.
std::set<ValueId> slices_of(const Draft& draft, std::int32_t id, const Graph& region) {
  const Node& node = draft.graph.node(id);
  std::set<ValueId> slices;
  std::size_t carries = region.outputs().size(), moving = carries;
  if (node.op == &Op<Scan>::def()) {
    const Scan op = Op<Scan>::from(node.attrs);
    carries = static_cast<std::size_t>(op.carries), moving = carries + static_cast<std::size_t>(op.scanned);
  }
  const std::size_t before = node.operands.size() - region.inputs().size();  // the predicate of a branch
  for (std::size_t i = 0; i < region.inputs().size(); ++i)
    if ((carries <= i && i < moving) || !draft.begins_aligned(node.operands[before + i])) slices.insert(region.inputs()[i].second.id());
  for (std::size_t i = 0; i < region.outputs().size(); ++i)
    if (carries <= i || !draft.begins_aligned({id, static_cast<std::int32_t>(i)})) slices.insert(region.outputs()[i].second.id());
  return slices;
}

/// From a graph of primitives, and of composites that the target's claims take, to a program.
class Lowering {
 public:
  Lowering(const Graph& graph, const TargetDevice& target, bool fuse, std::vector<std::string> symbols, bool inner,
           std::set<ValueId> slices = {})
      : graph_(graph), draft_{graph, target, fuse, inner, std::move(symbols), std::move(slices), cut_for(target, graph, fuse)} {}

  Program run() {
    share_bytes();
    claim();
    while (!build_launches()) {
    }
    return program();
  }

 private:
  void share_bytes();
  void claim();
  bool build_launches();
  std::optional<Launch> claimed(ValueId v) const;
  bool store_repeated(const Kernel& kernel);
  std::optional<ValueId> copied(const Kernel& kernel, const Type& type) const;
  Program program();
  std::vector<Unit> units();
  Launch host_launch(std::int32_t id) const;
  Launch kernel_launch(OutputKernel outputs) const;
  void lower_regions(Program& result) const;
  static void move_packings(Program& result);

  const Graph& graph_;
  Draft draft_;
  std::vector<std::unique_ptr<GraphClaim>> claims_;
  std::map<ValueId, Launch> claimed_;
  std::map<ValueId, OutputKernel> kernels_;
};

/// Bytes read as another type are the same memory. Such a node is stored with its operand, as those of the host are.
void Lowering::share_bytes() {
  for (std::int32_t id = 0; id < static_cast<std::int32_t>(graph_.size()); ++id)
    if (draft_.cut.on_host(id) && is_reinterpretation(graph_.node(id))) draft_.views[{id, 0}] = graph_.node(id).operands[0];
}

/// Stores what claims read and write, and keeps inside what they compute.
void Lowering::claim() {
  for (const Claim* claim : draft_.target.claims) claims_.push_back(claim->start(draft_));
  for (const auto& claim : claims_) claim->store_operands();
  std::vector<std::vector<ValueId>> regions;
  for (const auto& claim : claims_) std::ranges::move(claim->regions(), std::back_inserter(regions));
  draft_.cut.share(regions);
  for (const auto& claim : claims_) claim->build();
}

std::optional<Launch> Lowering::claimed(ValueId v) const {
  for (const auto& claim : claims_)
    if (auto launch = claim->launch(v)) return launch;
  return std::nullopt;
}

/// Builds the launches that are missing. False when a kernel would repeat a reduction: it is stored instead, and what computed it is
/// built again.
bool Lowering::build_launches() {
  Cut& cut = draft_.cut;
  for (std::int32_t id = 0; id < static_cast<std::int32_t>(graph_.size()); ++id) {
    check_interruption();
    const ValueId v{id, 0};
    if (!cut.live(id) || cut.is_source(v) || !cut.is_stored(v) || draft_.inside.count(v)) continue;
    if (kernels_.count(v) || claimed_.count(v)) continue;
    if (auto launch = claimed(v)) {
      claimed_.emplace(v, std::move(*launch));
      continue;
    }
    if (cut.on_host(id) || draft_.views.count(v)) continue;
    auto built = build_outputs(graph_, {v}, draft_.stored_test());
    if (const auto source = copied(built->kernel, graph_.type(v))) {
      draft_.views[v] = *source;
      continue;
    }
    if (draft_.fuse && !store_repeated(built->kernel)) return false;
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
    if (factor <= 1.5 || !draft_.cut.store(value)) continue;
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
    if (auto launch = claimed_.find(v); launch != claimed_.end()) units.push_back({std::nullopt, std::move(launch->second)});
    else if (!draft_.cut.live(id) || draft_.views.count(v) || draft_.inside.count(v)) continue;
    else if (draft_.cut.on_host(id)) units.push_back({std::nullopt, host_launch(id)});
    else if (auto kernel = kernels_.find(v); kernel != kernels_.end()) units.push_back({std::move(kernel->second), {}});
  }
  for (Launch& packing : draft_.packings) units.push_back({std::nullopt, std::move(packing)});
  return units;
}

Program Lowering::program() {
  std::vector<Unit> units = this->units();
  Program result(graph_);
  result.symbols = draft_.symbols;
  result.views = std::move(draft_.views);
  if (draft_.fuse) {
    const auto root = [&](ValueId v) { return result.root(v); };
    std::set<ValueId> outputs;
    for (const auto& [name, value] : graph_.outputs()) outputs.insert(root(value.id()));
    units = merge_outputs(graph_, std::move(units), draft_.stored_test(), root, outputs, draft_.target.caps);
  }
  for (Unit& unit : units) result.launches.push_back(unit.outputs ? kernel_launch(std::move(*unit.outputs)) : std::move(unit.launch));
  move_packings(result);
  lower_regions(result);
  return result;
}

/// Each to right behind what it packs, so that nothing waits long to be packed.
void Lowering::move_packings(Program& result) {
  std::map<ValueId, std::size_t> behind;  // what is written: the place behind it
  std::vector<std::pair<std::size_t, Launch>> ordered;
  for (Launch& launch : result.launches) {
    std::size_t place = ordered.size() + 1;
    if (launch.packed) {
      result.packed.emplace(launch.writes[0], *launch.packed);
      const auto writer = behind.find(result.root(launch.reads[0]));
      place = writer == behind.end() ? 0 : writer->second;
    }
    for (ValueId v : launch.writes) behind[v] = place;
    ordered.emplace_back(place, std::move(launch));
  }
  std::ranges::stable_sort(ordered, {}, [](const auto& entry) { return entry.first; });
  result.launches.clear();
  for (auto& [place, launch] : ordered) result.launches.push_back(std::move(launch));
}

void Lowering::lower_regions(Program& result) const {
  for (std::int32_t id = 0; id < static_cast<std::int32_t>(graph_.size()); ++id)
    for (const Attr& attr : draft_.cut.on_host(id) ? graph_.node(id).attrs : Attrs{})
      if (const auto* region = std::get_if<Region>(&attr); region && *region && !result.regions.count(region->get()))
        result.regions[region->get()] = std::make_shared<Program>(
            Lowering(**region, draft_.target, draft_.fuse, draft_.symbols, true, slices_of(draft_, id, **region)).run());
}

Launch Lowering::host_launch(std::int32_t id) const {
  const Node& node = graph_.node(id);
  const bool is_control = has_regions(node);
  if (!is_control && draft_.target.complete)
    fail("no kernel: {}<{}> on {}", node.op->name, node.results[0].to_string(), draft_.target.name);
  Launch launch{is_control ? Launch::Kind::control : Launch::Kind::host, std::string(node.op->name), node.operands, {}};
  launch.node = {id, 0};
  for (std::size_t r = 0; r < node.results.size(); ++r) launch.writes.push_back({id, static_cast<std::int32_t>(r)});
  return launch;
}

Launch Lowering::kernel_launch(OutputKernel outputs) const {
  std::vector<Kernel> kernels;
  if (draft_.fuse) kernels = split_at_guards(graph_, outputs, draft_.stored_test());
  Launch launch;
  for (const KernelBuffer& buffer : outputs.kernel.buffers) (buffer.written ? launch.writes : launch.reads).push_back(buffer.value);
  if (kernels.empty()) kernels.push_back(std::move(outputs.kernel));
  auto one_row = draft_.target.caps.schedule.group > 0 && kernels.size() == 1 ? of_one_row(kernels[0]) : std::nullopt;
  for (Kernel& kernel : kernels) launch.kernels.push_back(draft_.generate(std::move(kernel)));
  if (one_row) {
    GeneratedKernel alone = draft_.generate(std::move(one_row->first));
    if (alone.text.group > 0 && launch.kernels[0].text.group == 0) {
      alone.only = one_row->second;
      launch.kernels[0].only = SizeRange{one_row->second.size, 2, one_row->second.size.upper()};
      launch.kernels.push_back(std::move(alone));
    }
  }
  launch.name = launch.kernels[0].short_name();
  launch.storing = launch.kernels.size() == 1 ? 0 : -1;
  return launch;
}

}  // namespace

Program lower(const Graph& graph, const TargetDevice& target, bool fuse) {
  return Lowering(graph, target, fuse, symbol_names(graph), false).run();
}

}  // namespace rlx
