// What a compiled graph looks like at each stage, and how each node is computed.
#include <algorithm>

#include "ir/graph_data.h"
#include "ir/op.h"
#include "ir/rebuild.h"
#include "ir/sources.h"
#include "lowering/claim.h"
#include "passes/expand.h"
#include "rlx/text.h"
#include "runtime/executable.h"
#include "runtime/host_node.h"
#include "runtime/reports/launch_names.h"
#include "runtime/reports/program_text.h"

namespace rlx {
namespace {

std::string kind(const Launch& launch) {
  switch (launch.kind) {
    case Launch::Kind::kernel: return launch.claimed ? "claim" : "kernel";
    case Launch::Kind::claim: return "claim";
    case Launch::Kind::control: return "control";
    case Launch::Kind::host: return "host";
  }
  return "";
}

}  // namespace

std::string arithmetic_of(const Graph& graph, const Launch& launch) {
  if (!launch.arithmetic.empty()) return launch.arithmetic;
  return std::ranges::any_of(launch.writes, [&](ValueId v) { return graph.type(v).dtype == f64; }) ? "f64" : "f32";
}

std::vector<LaunchReport> launch_costs(const Executable::State& state, const Bindings& bindings) {
  const Graph& graph = state.program.graph;
  const std::vector<LaunchName> names = launch_names(state);
  std::vector<LaunchReport> reports;
  for (std::size_t l = 0; l < state.program.launches.size(); ++l) {
    const Launch& launch = state.program.launches[l];
    const Cost cost = rlx::cost(state.program, launch, bindings);
    LaunchReport report;
    report.name = launch.name, report.kind = state.is_prepared[l] ? "prepared" : kind(launch);
    report.layer = names[l].layer, report.ops = names[l].ops, report.pass = names[l].pass;
    report.arithmetic = arithmetic_of(graph, launch);
    for (ValueId v : launch.writes) report.types += (report.types.empty() ? "" : ", ") + state.program.type(v).to_string();
    report.flops = cost.flops, report.bytes = cost.bytes;
    reports.push_back(std::move(report));
  }
  return reports;
}

namespace {

std::string kernel_list(const Program& program) {
  std::string text;
  for (const Launch& launch : program.launches) {
    const std::string part = launch.claim.empty() ? "" : "part of " + launch.claim + " ";
    for (const GeneratedKernel& kernel : launch.kernels)
      text += fmt::format("; {}{}\n{}{}\n", part, kernel.text.name, to_string(kernel.kernel), kernel.text.text);
  }
  for (const auto& [region, inner] : program.regions) text += kernel_list(*inner);
  return text;
}

/// One node as in the text form, without its value number.
std::string node_text(const Node& node) {
  std::string text;
  for (const Type& type : node.results) text += (text.empty() ? "" : ", ") + type.to_string();
  text += fmt::format(" = {}(", node.op->name);
  for (std::size_t i = 0; i < node.operands.size(); ++i) text += fmt::format("{}%{}", i ? ", " : "", node.operands[i].node);
  text += ")";
  for (std::size_t i = 0; i < node.attrs.size(); ++i)
    if (!equal(node.attrs[i], node.op->fields[i].initial)) text += fmt::format(" {}={}", node.op->fields[i].name, to_string(node.attrs[i]));
  return text;
}

/// Which launches compute the nodes of a program.
class NodeLaunches {
 public:
  explicit NodeLaunches(const Executable::State& state) : state_(state), labels_(launch_names(state)), names_(graph().size()) {
    for (const Launch& launch : state.program.launches) {
      for (ValueId v : launch.writes) writer_[v] = &launch;
      if (launch.claimed && launch.node.node >= 0) claimed_[launch.node] = fmt::format("{} in {}", launch.claim, label(launch));
    }
    name_launches();
  }

  NodeReport report(std::int32_t id, const std::string& indent) const {
    const auto& program = state_.program;
    const Node& node = graph().node(id);
    NodeReport report{fmt::format("{}%{}: {}", indent, id, node_text(node)), "fused", names_[static_cast<std::size_t>(id)]};
    const ValueId v{id, 0};
    const auto written = writer_.find(v);
    const Launch* const launch = written == writer_.end() ? nullptr : written->second;
    if (constant_value(node)) report.how = "constant";
    else if (launch && state_.is_prepared[static_cast<std::size_t>(launch - program.launches.data())]) report.how = "prepared";
    else if (claimed_.count(v)) report.how = "claimed", report.by = claimed_.at(v);
    else if (program.views.count(v)) report.how = "view", report.by = fmt::format("%{}", program.root(v).node);
    else if (launch && launch->kind == Launch::Kind::host && !state_.session->storage.on_host())
      report.how = "host", report.by = crossing(*launch);
    else if (launch) report.how = launch->kind == Launch::Kind::kernel || launch->kind == Launch::Kind::claim ? "generated" : kind(*launch);
    return report;
  }

 private:
  const Graph& graph() const { return state_.program.graph; }

  /// Why the host computes it; the bytes that leave the device for it, and those that come back.
  std::string crossing(const Launch& launch) const {
    std::int64_t there = 0, back = 0;
    for (const ValueId v : launch.reads)
      if (!state_.of_host.contains(v)) there += most_bytes(graph().type(v));
    for (const ValueId v : launch.writes)
      if (const auto stays = state_.of_host.find(v); stays == state_.of_host.end() || !stays->second) back += most_bytes(graph().type(v));
    return fmt::format("{}: {} bytes to the CPU and {} back",
                       host_reason(graph(), graph().node(launch.node.node), state_.session->target.caps), there, back);
  }

  std::string label(const Launch& launch) const {
    const LaunchName& name = labels_[static_cast<std::size_t>(&launch - state_.program.launches.data())];
    return name.layer.empty() ? name.ops : fmt::format("{}: {}", name.layer, name.ops);
  }

  /// A value that is not stored is part of the kernels of its users; the first is named.
  void name_launches() {
    for (auto id = static_cast<std::int32_t>(names_.size()); id-- > 0;) {
      auto& mine = names_[static_cast<std::size_t>(id)];
      if (const auto it = writer_.find({id, 0}); it != writer_.end()) mine = label(*it->second);
      for (ValueId operand : graph().node(id).operands)
        if (!writer_.count(operand) && !mine.empty()) names_[static_cast<std::size_t>(operand.node)] = mine;
    }
  }

  const Executable::State& state_;
  std::vector<LaunchName> labels_;  // by launch
  std::map<ValueId, const Launch*> writer_;
  std::map<ValueId, std::string> claimed_;  // the launch, by the op's own result
  std::vector<std::string> names_;          // of launches, by node
};

/// How each node of a program is computed, those of regions behind the op that they belong to.
std::vector<NodeReport> node_reports(const Executable::State& state, const std::string& indent) {
  const Graph& graph = state.program.graph;
  const NodeLaunches launches(state);
  std::vector<NodeReport> reports;
  for (std::int32_t id = 0; id < static_cast<std::int32_t>(graph.size()); ++id) {
    const Node& node = graph.node(id);
    if (is_input(node)) continue;
    reports.push_back(launches.report(id, indent));
    for (const Attr& attr : node.attrs)
      if (const auto* region = std::get_if<Region>(&attr); region && state.regions.count(region->get()))
        for (NodeReport& inner : node_reports(*state.regions.at(region->get()), indent + "  ")) reports.push_back(std::move(inner));
  }
  return reports;
}

/// The same of a graph that the device takes whole.
std::vector<NodeReport> taken_reports(const TakenGraph& taken, const Graph& graph, const std::string& indent) {
  std::vector<NodeReport> reports;
  for (std::int32_t id : needed_nodes(graph.data(), output_ids(graph))) {
    const Node& node = graph.node(id);
    const auto why = taken.left_to_host(graph, node);
    const std::string how = constant_value(node) ? "constant" : has_regions(node) ? "control" : why ? "host" : "native";
    reports.push_back({fmt::format("{}%{}: {}", indent, id, node_text(node)), how, how == "host" ? *why : ""});
    for (const Attr& attr : node.attrs)
      if (const auto* region = std::get_if<Region>(&attr); region && *region)
        for (NodeReport& inner : taken_reports(taken, **region, indent + "  ")) reports.push_back(std::move(inner));
  }
  return reports;
}

/// Whether a composite is computed whole.
bool is_whole(const Executable::State& state, const Node& node) {
  if (state.taken) return state.session->options.claims && !state.taken->left_to_host(state.source, node);
  return claim_of(state.session->target, state.source, node) != nullptr;
}

}  // namespace

std::string Executable::dump(Stage stage) const {
  if (state_->taken && stage != Stage::hir)
    return stage == Stage::mir ? to_text(state_->taken->graph) : fmt::format("computed whole by {}\n", state_->session->device.name());
  switch (stage) {
    case Stage::hir: return to_text(state_->source);
    case Stage::mir: return to_text(state_->program.graph);
    case Stage::lir: return program_text(*state_);
    case Stage::kernels: return kernel_list(state_->program);
  }
  return "";
}

std::vector<NodeReport> Executable::explain() const {
  std::vector<NodeReport> reports;
  for (std::int32_t id = 0; id < static_cast<std::int32_t>(state_->source.size()); ++id) {
    const Node& node = state_->source.node(id);
    if (node.op->kind == OpKind::composite && !is_whole(*state_, node)) reports.push_back({node_text(node), "decomposed", ""});
  }
  for (const PrecisionChoice& choice : state_->precision)
    reports.push_back(
        {choice.product, "precision", fmt::format("{}{}{}", name(choice.precision), choice.reason.empty() ? "" : ": ", choice.reason)});
  for (NodeReport& report : state_->taken ? taken_reports(*state_->taken, state_->taken->graph, "") : node_reports(*state_, ""))
    reports.push_back(std::move(report));
  if (state_->taken)
    for (auto& [unit, operations] : state_->taken->placements()) reports.push_back({std::move(operations), "native", std::move(unit)});
  return reports;
}

}  // namespace rlx
