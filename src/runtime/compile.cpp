// From a graph to an executable.
#include <algorithm>

#include "backends/backend.h"
#include "base/working.h"
#include "ir/op.h"
#include "ir/rebuild.h"
#include "ir/reference.h"
#include "ir/sources.h"
#include "ir/symbols.h"
#include "lowering/claim.h"
#include "lowering/lowering.h"
#include "lowering/object_cache.h"
#include "ops/control/registered_kernels.h"
#include "passes/exact_activations.h"
#include "passes/expand.h"
#include "passes/legalize.h"
#include "runtime/executable.h"
#include "runtime/host_node.h"

namespace rlx {
namespace {

/// Every size must follow from the shapes of the inputs.
void check_symbols(const Graph& graph) {
  const auto known = graph.symbols();
  for (std::int32_t id = 0; id < static_cast<std::int32_t>(graph.size()); ++id)
    for (const Type& type : graph.node(id).results)
      for (const Dim& dim : type.shape) {
        std::map<std::string, std::int64_t> used;
        dim.collect_symbols(used);
        for (const auto& [symbol, bound] : used)
          if (!follows_from(known, symbol))
            fail("graph '{}': {} gives {}, but no input has a size from which {} follows", graph.name(), graph.node(id).op->name,
                 type.to_string(), symbol);
      }
}

/// What a graph must keep beyond the rules of the IR to be run.
void check_outputs(const Graph& graph) {
  if (graph.outputs().empty()) fail("graph '{}': it has no outputs", graph.name());
  std::map<std::string_view, const Type*> states;
  for (const auto& [input, value] : graph.inputs())
    if (input.kind == InputKind::state) states.emplace(input.name, &input.type);
  for (const auto& [name, value] : graph.outputs()) {
    const auto state = states.find(name);
    if (state != states.end() && !(*state->second == value.type()))
      fail("graph '{}': output '{}' is {}, but the state of that name is {}", graph.name(), name, value.type().to_string(),
           state->second->to_string());
  }
}

/// The nodes that claims keep in a graph, found once for it.
class KeptNodes {
 public:
  explicit KeptNodes(const TargetDevice& target) : target_(target) {}

  bool has(const Graph& graph, const Node& node) {
    if (!of_ || &of_->data() != &graph.data()) {
      of_ = graph;
      kept_.clear();
      for (const Claim* claim : target_.claims)
        for (const std::int32_t id : claim->kept(graph)) kept_.insert(&graph.node(id));
    }
    return kept_.contains(&node);
  }

 private:
  const TargetDevice& target_;
  std::optional<Graph> of_;  // which lives as long as its nodes are known
  std::set<const Node*> kept_;
};

/// What stays as it is although it has an expansion: what claims compute, and types that kernels lack, as the host computes such a node at
/// once rather than in many steps.
IsComputed whole_primitives(const TargetDevice& target) {
  return [&target, kept = std::make_shared<KeptNodes>(target)](const Graph& graph, const Node& node) {
    const auto lacks = [&](const Type& type) { return !target.caps.has(type.dtype); };
    return std::ranges::any_of(node.results, lacks) ||
           std::ranges::any_of(node.operands, [&](ValueId operand) { return lacks(graph.type(operand)); }) || kept->has(graph, node);
  };
}

}  // namespace

LoweredGraph lower_graph(const Graph& given, const SessionOptions& options, const TargetDevice& target) {
  const Graph graph = options.round_activations ? given : with_exact_activations(given);
  const IsClaimed is_claimed = [&](const Graph& in, const Node& node) { return claim_of(target, in, node) != nullptr; };
  PreciseGraph precise = with_precision(graph, options.precision, options.calibration ? &*options.calibration : nullptr);
  Graph primitives = expand(precise.graph, is_claimed);
  // Which nodes change states where they lie shows among primitives only.
  if (target.expands) primitives = expand(primitives, is_claimed, whole_primitives(target));
  Graph legal = legalize(primitives, can_generate, is_claimed);
  for (const Claim* claim : target.claims) legal = claim->prepare(legal, target.caps);
  return {lower(legal, target, options.fuse), std::move(precise.choices)};
}

void check_runnable(const Graph& graph) {
  check_outputs(graph);
  check_symbols(graph);
}

LoweredGraph lower_for(const Graph& graph, const SessionOptions& options, const Device& device, const TargetDevice& target) {
  check_runnable(graph);
  LoweredGraph lowered = lower_graph(graph, options, target);
  if (device.backend().memory() && !options.host) refuse_host(lowered.program, device, target.caps);
  return lowered;
}

namespace {

/// Nodes that a device which takes whole graphs leaves to the host, compiled when they are first met.
class NodesOnHost {
 public:
  NodesOnHost(SessionOptions options) : options_(std::move(options)) {}

  std::vector<Array> run(const Graph& graph, std::int32_t id, const Bindings& bindings, std::span<const Array> operands) {
    const std::optional<Executable> compiled = executable(graph, id);
    if (!compiled) return evaluate_node(graph, id, bindings, operands, {});
    std::map<std::string, Feed> fed;
    for (std::size_t i = 0; i < operands.size(); ++i) fed.emplace(std::to_string(i), operands[i]);
    std::vector<Array> results;
    for (auto& [name, result] : compiled->run(fed)) results.push_back(result);
    return results;
  }

 private:
  std::optional<Executable> executable(const Graph& graph, std::int32_t id) {
    const std::scoped_lock lock(mutex_);
    const auto [known, is_new] = compiled_.try_emplace({&graph.data(), id});
    if (is_new) {
      if (!session_) session_.emplace(Device::cpu(), options_);
      if (const std::optional<Graph> single = graph_of_node(graph, id)) known->second = session_->compile(*single);
    }
    return known->second;
  }

  SessionOptions options_;
  std::mutex mutex_;
  std::optional<Session> session_;
  std::map<std::pair<const GraphData*, std::int32_t>, std::optional<Executable>> compiled_;
};

/// The same inputs, and nothing to compute.
Graph inputs_alone(const Graph& graph) {
  Graph inputs(graph.name());
  for (const auto& [input, value] : graph.inputs()) inputs.add_input(input);
  return inputs;
}

/// Throws Error for the first node that the device does not compute.
void refuse_host(const TakenGraph& taken, const Graph& graph, const Device& device) {
  for (std::int32_t id : needed_nodes(graph.data(), output_ids(graph))) {
    const Node& node = graph.node(id);
    if (constant_value(node)) continue;
    if (const auto why = taken.left_to_host(graph, node))
      fail("graph '{}': {}, {}, is not computed on {} ({}), and the session leaves nothing to the host", taken.graph.name(), node.op->name,
           node.results[0].to_string(), device.name(), *why);
    for (const Attr& attr : node.attrs)
      if (const auto* region = std::get_if<Region>(&attr); region && *region) refuse_host(taken, **region, device);
  }
}

std::shared_ptr<Executable::State> take_whole(const std::shared_ptr<Session::State>& session, const Graph& graph) {
  const SessionOptions& options = session->options;
  auto host = std::make_shared<NodesOnHost>(SessionOptions{.threads = options.threads, .cache_folder = options.cache_folder});
  PreciseGraph precise = with_precision(options.round_activations ? graph : with_exact_activations(graph), options.precision,
                                        options.calibration ? &*options.calibration : nullptr);
  auto taken = session->device.backend().take(
      precise.graph, options, [host](const Graph& of, std::int32_t id, const Bindings& bindings, std::span<const Array> operands) {
        return host->run(of, id, bindings, operands);
      });
  if (!options.host) refuse_host(*taken, taken->graph, session->device);
  auto state = std::make_shared<Executable::State>(session, graph, Program(inputs_alone(graph)));
  state->taken = std::move(taken);
  state->precision = std::move(precise.choices);
  return state;
}

}  // namespace

std::shared_ptr<DeviceKernels> load_kernels(Session::State& session, Program& program, const KernelObjects& given) {
  const std::vector<GeneratedKernel*> kernels = program.kernels();
  std::vector<KernelText> texts;
  for (const GeneratedKernel* kernel : kernels) texts.push_back(kernel->text);
  if (session.code) {
    const auto functions = session.code->load(texts, given);
    for (std::size_t i = 0; i < kernels.size(); ++i) kernels[i]->function = functions[i];
    return nullptr;
  }
  std::shared_ptr<DeviceKernels> on_device =
      session.storage.device().load(texts, session.options.cache_folder.value_or(default_cache_folder()));
  for (std::size_t i = 0; i < kernels.size(); ++i) kernels[i]->number = i;
  const std::scoped_lock lock(session.counting);
  add(session.on_device, on_device->counters);
  return on_device;
}

Executable Session::compile(const Graph& given) const {
  const Working working;
  if (state_->device == Device::automatic()) return state_->chosen_for(given).compile(given);
  const Graph graph = with_registered_kernels(given.snapshot(), device().name());  // a snapshot: the caller may go on building
  if (state_->device.backend().takes_graphs()) return Executable(take_whole(state_, graph));
  LoweredGraph lowered = lower_for(graph, state_->options, state_->device, state_->target);
  std::shared_ptr<DeviceKernels> on_device = load_kernels(*state_, lowered.program);
  auto executable = std::make_shared<Executable::State>(state_, graph, std::move(lowered.program), std::move(on_device));
  executable->precision = std::move(lowered.precision);
  if (state_->options.check_indices)
    if (IndexChecks indices = index_checks(graph); !indices.checks.empty())
      executable->index_checks = {compile(indices.graph), std::move(indices.checks)};
  return Executable(std::move(executable));
}

}  // namespace rlx
