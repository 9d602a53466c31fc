// From a graph to an executable.
#include <algorithm>

#include "backends/backend.h"
#include "ir/op.h"
#include "ir/rebuild.h"
#include "lowering/claim.h"
#include "lowering/lowering.h"
#include "passes/exact_activations.h"
#include "passes/expand.h"
#include "passes/legalize.h"
#include "runtime/executable.h"

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
          if (!known.count(symbol))
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

/// Throws Error for the first node that no kernel of the device computes.
void refuse_host(const Program& program, const Device& device) {
  for (const Launch& launch : program.launches)
    if (launch.kind == Launch::Kind::host) {
      const Type& type = program.graph.node(launch.node.node).results[0];
      fail("graph '{}': no kernel computes {}, {}, on {}, and the session leaves nothing to the host", program.graph.name(), launch.name,
           type.to_string(), device.name());
    }
  for (const auto& [region, inner] : program.regions) refuse_host(*inner, device);
}

void add_counters(Session::State& session, const CompileCounters& more) {
  const std::scoped_lock lock(session.counting);
  CompileCounters& all = session.on_device;
  all.kernels_compiled += more.kernels_compiled;
  all.kernels_from_disk += more.kernels_from_disk;
  all.kernels_shared += more.kernels_shared;
  if (!more.cache_error.empty()) all.cache_error = more.cache_error;
}

/// What stays as it is although it has an expansion: what claims compute, and types that kernels lack, as the host computes such a node at
/// once rather than in many steps.
IsComputed whole_primitives(const TargetDevice& target) {
  return [&target](const Graph& graph, const Node& node) {
    const auto lacks = [&](const Type& type) { return !target.caps.has(type.dtype); };
    return std::ranges::any_of(node.results, lacks) ||
           std::ranges::any_of(node.operands, [&](ValueId operand) { return lacks(graph.type(operand)); }) ||
           std::ranges::any_of(target.claims, [&](const Claim* claim) { return claim->keeps(graph, node); });
  };
}

}  // namespace

LoweredGraph lower_graph(const Graph& given, const SessionOptions& options, const TargetDevice& target) {
  const Graph graph = options.round_activations ? given : with_exact_activations(given);
  const IsClaimed is_claimed = [&](const Graph& in, const Node& node) { return claim_of(target, in, node) != nullptr; };
  PreciseGraph precise = with_precision(graph, options.precision, options.calibration ? &*options.calibration : nullptr);
  Graph primitives = expand(precise.graph, is_claimed);
  if (target.expands) primitives = expand(primitives, is_claimed, whole_primitives(target));
  Graph legal = legalize(primitives, can_generate, is_claimed);
  for (const Claim* claim : target.claims) legal = claim->prepare(legal, target.caps);
  return {lower(legal, target, options.fuse), std::move(precise.choices)};
}

LoweredGraph lower_for(const Graph& graph, const SessionOptions& options, const Device& device, const TargetDevice& target) {
  check_outputs(graph);
  check_symbols(graph);
  LoweredGraph lowered = lower_graph(graph, options, target);
  if (device.backend().memory() && !options.host) refuse_host(lowered.program, device);
  return lowered;
}

Executable Session::compile(const Graph& given) const {
  if (state_->device == Device::automatic()) return state_->chosen_for(given).compile(given);
  const Graph graph = given.snapshot();  // the caller may go on building
  LoweredGraph lowered = lower_for(graph, state_->options, state_->device, state_->target);
  const std::vector<GeneratedKernel*> kernels = lowered.program.kernels();
  std::vector<KernelText> texts;
  for (const GeneratedKernel* kernel : kernels) texts.push_back(kernel->text);
  std::shared_ptr<DeviceKernels> on_device;
  if (state_->storage.on_host()) {
    const auto functions = state_->jit.load(texts, state_->pool);
    for (std::size_t i = 0; i < kernels.size(); ++i) kernels[i]->function = functions[i];
  } else {
    on_device = state_->storage.device().load(texts, state_->options.cache_folder.value_or(default_cache_folder()));
    for (std::size_t i = 0; i < kernels.size(); ++i) kernels[i]->number = i;
    add_counters(*state_, on_device->counters);
  }
  auto executable = std::make_shared<Executable::State>(state_, graph, std::move(lowered.program), std::move(on_device));
  executable->precision = std::move(lowered.precision);
  if (state_->options.check_indices)
    if (IndexChecks indices = index_checks(graph); !indices.checks.empty())
      executable->index_checks = {compile(indices.graph), std::move(indices.checks)};
  return Executable(std::move(executable));
}

}  // namespace rlx
