// What a compiled graph looks like at each stage, and how each node is computed.
#include <algorithm>

#include "backends/cpu/attention/attention.h"
#include "backends/cpu/claims.h"
#include "ir/graph_data.h"
#include "ir/op.h"
#include "ir/sources.h"
#include "passes/expand.h"
#include "rlx/text.h"
#include "runtime/executable.h"
#include "runtime/launch_names.h"

namespace rlx {
namespace {

std::string kind(const cpu::Launch& launch) {
  if (std::holds_alternative<cpu::GeneratedKernel>(launch.what)) return "kernel";
  if (const auto* host = std::get_if<cpu::HostLaunch>(&launch.what); host && !host->routine) return host->control ? "control" : "host";
  return "claim";
}

/// See LaunchReport::arithmetic.
std::string arithmetic_of(const Graph& graph, const cpu::Launch& launch, cpu::CpuLevel level) {
  if (const auto* product = std::get_if<cpu::Product>(&launch.what)) {
    return product->element == i8 ? "int8" : std::string(name(product->float_left ? f32 : product->element));
  }
  const auto writes = [&](DType dtype) {
    return std::ranges::any_of(launch.writes, [&](ValueId v) { return graph.type(v).dtype == dtype; });
  };
  if (const auto* dot = std::get_if<cpu::BlockDot>(&launch.what)) return dot->kernel(level) ? "int8" : "f32";
  if (std::holds_alternative<cpu::Attention>(launch.what)) return writes(bf16) && cpu::multiplies_bf16(level) ? "bf16" : "f32";
  return writes(f64) ? "f64" : "f32";
}

double bytes_of(const Type& type, const Bindings& bindings) {
  return static_cast<double>(bytes_for(type.dtype, type.size().evaluate(bindings)));
}

/// Bytes of weights that no row asks for, as of most experts: they are not read. At most one matrix for each row is.
double unread_bytes(const Graph& graph, const cpu::BlockDot& dot, const Bindings& bindings) {
  const auto matrices = static_cast<double>(dot.matrices.value()), rows = static_cast<double>(dot.rows.evaluate(bindings));
  return std::max(0.0, 1 - rows / matrices) * bytes_of(graph.type(dot.blocks), bindings);
}

/// Of a launch that is no generated kernel; 0 where the host computes.
double claimed_flops(const Graph& graph, const cpu::Launch& launch, const Bindings& bindings) {
  const auto number = [&](const Dim& size) { return static_cast<double>(size.evaluate(bindings)); };
  if (const auto* product = std::get_if<cpu::Product>(&launch.what))
    return number(graph.type(product->dot).size() * product->depth.extent * 2);
  if (const auto* attention = std::get_if<cpu::Attention>(&launch.what))
    return 2 * number(attention->head_size + attention->value_size) * cpu::visible_scores(*attention, bindings);
  if (const auto* dot = std::get_if<cpu::BlockDot>(&launch.what)) return number(dot->rows * dot->columns * dot->depth * 2);
  return 0;
}

/// Of any launch.
Cost launch_cost(const Graph& graph, const cpu::Launch& launch, const Bindings& bindings) {
  Cost c;
  if (std::holds_alternative<cpu::GeneratedKernel>(launch.what)) {
    for (const cpu::GeneratedKernel* kernel : launch.kernels()) {
      const Cost part = cost(kernel->kernel, bindings);
      c = {c.flops + part.flops, c.bytes + part.bytes};
    }
    return c;
  }
  c.flops = claimed_flops(graph, launch, bindings);
  for (const auto* values : {&launch.reads, &launch.writes})
    for (ValueId v : *values) c.bytes += bytes_of(graph.type(v), bindings);
  if (const auto* dot = std::get_if<cpu::BlockDot>(&launch.what)) c.bytes -= unread_bytes(graph, *dot, bindings);
  return c;
}

}  // namespace

std::vector<LaunchReport> launch_costs(const Executable::State& state, const Bindings& bindings) {
  const Graph& graph = state.program.graph;
  const std::vector<LaunchName> names = launch_names(state);
  std::vector<LaunchReport> reports;
  for (std::size_t l = 0; l < state.program.launches.size(); ++l) {
    const cpu::Launch& launch = state.program.launches[l];
    const Cost cost = launch_cost(graph, launch, bindings);
    LaunchReport report;
    report.name = launch.name(), report.kind = state.is_prepared[l] ? "prepared" : kind(launch);
    report.layer = names[l].layer, report.ops = names[l].ops, report.pass = names[l].pass;
    report.arithmetic = arithmetic_of(graph, launch, cpu::level_of(state.session->target));
    for (ValueId v : launch.writes) report.types += (report.types.empty() ? "" : ", ") + graph.type(v).to_string();
    report.flops = cost.flops, report.bytes = cost.bytes;
    reports.push_back(std::move(report));
  }
  return reports;
}

namespace {

std::string place(const Executable::State& state, const Slot& slot) {
  switch (slot.place) {
    case Slot::Place::input: return "input '" + state.source.inputs()[slot.index].first.name + "'";
    case Slot::Place::constant: return "constant";
    case Slot::Place::prepared: return "prepared";
    case Slot::Place::output: return "output '" + state.source.outputs()[slot.index].first + "'";
    case Slot::Place::arena: return fmt::format("arena+{}", state.plan.offsets[slot.index]);
  }
  return "";
}

std::string describe(const Executable::State& state, ValueId value) {
  const Slot& slot = state.slots[static_cast<std::size_t>(state.slot_of(value))];
  return fmt::format("%{}: {} at {}", value.node, state.program.graph.type(value).to_string(), place(state, slot));
}

std::string launch_list(const Executable::State& state) {
  std::string text = fmt::format("arena: {} bytes at the bounds of the symbols\n", state.plan.bytes);
  for (std::size_t l = 0; l < state.program.launches.size(); ++l) {
    const cpu::Launch& launch = state.program.launches[l];
    text += launch.name() + (state.is_prepared[l] ? " once" : "") + "\n";
    for (ValueId v : launch.reads) text += "  reads  " + describe(state, v) + "\n";
    for (ValueId v : launch.writes) text += "  writes " + describe(state, v) + "\n";
  }
  for (const auto& [region, inner] : state.regions) text += fmt::format("region '{}'\n", region->name()) + launch_list(*inner);
  return text;
}

std::string kernel_list(const cpu::Program& program) {
  std::string text;
  for (const cpu::Launch& launch : program.launches) {
    const char* part = std::holds_alternative<cpu::Product>(launch.what) ? "part of a product " : "";
    for (const cpu::GeneratedKernel* kernel : launch.kernels())
      text += fmt::format("; {}{}\n{}{}\n", part, kernel->text.name, to_string(kernel->kernel), kernel->text.text);
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
    for (const cpu::Launch& launch : state.program.launches) {
      for (ValueId v : launch.writes) writer_[v] = &launch;
      const auto claim = [&](ValueId node, const std::string& name) { claimed_[node] = fmt::format("{} in {}", name, label(launch)); };
      if (const auto* product = std::get_if<cpu::Product>(&launch.what)) claim(product->dot, "gemm");
      if (const auto* attention = std::get_if<cpu::Attention>(&launch.what)) claim(attention->node, launch.name());
      if (const auto* dot = std::get_if<cpu::BlockDot>(&launch.what)) claim(dot->node, launch.name());
      if (const auto* host = std::get_if<cpu::HostLaunch>(&launch.what); host && host->routine) claim({host->node, 0}, launch.name());
    }
    name_launches();
  }

  NodeReport report(std::int32_t id, const std::string& indent) const {
    const auto& program = state_.program;
    const Node& node = graph().node(id);
    NodeReport report{fmt::format("{}%{}: {}", indent, id, node_text(node)), "fused", names_[static_cast<std::size_t>(id)]};
    const ValueId v{id, 0};
    const auto written = writer_.find(v);
    const cpu::Launch* const launch = written == writer_.end() ? nullptr : written->second;
    if (constant_value(node)) report.how = "constant";
    else if (launch && state_.is_prepared[static_cast<std::size_t>(launch - program.launches.data())]) report.how = "prepared";
    else if (claimed_.count(v)) report.how = "claimed", report.by = claimed_.at(v);
    else if (program.views.count(v)) report.how = "view", report.by = fmt::format("%{}", program.root(v).node);
    else if (launch) report.how = std::holds_alternative<cpu::HostLaunch>(launch->what) ? kind(*launch) : "generated";
    return report;
  }

 private:
  const Graph& graph() const { return state_.program.graph; }

  std::string label(const cpu::Launch& launch) const {
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
  std::map<ValueId, const cpu::Launch*> writer_;
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

}  // namespace

std::string Executable::dump(Stage stage) const {
  switch (stage) {
    case Stage::hir: return to_text(state_->source);
    case Stage::mir: return to_text(state_->program.graph);
    case Stage::lir: return launch_list(*state_);
    case Stage::kernels: return kernel_list(state_->program);
  }
  return "";
}

std::vector<NodeReport> Executable::explain() const {
  std::vector<NodeReport> reports;
  for (std::int32_t id = 0; id < static_cast<std::int32_t>(state_->source.size()); ++id) {
    const Node& node = state_->source.node(id);
    if (node.op->kind == OpKind::composite && !(state_->session->options.claims && cpu::is_claimed(state_->source, node)))
      reports.push_back({node_text(node), "decomposed", ""});
  }
  for (const PrecisionChoice& choice : state_->precision)
    reports.push_back(
        {choice.product, "precision", fmt::format("{}{}{}", name(choice.precision), choice.reason.empty() ? "" : ": ", choice.reason)});
  for (NodeReport& report : node_reports(*state_, "")) reports.push_back(std::move(report));
  return reports;
}

}  // namespace rlx
