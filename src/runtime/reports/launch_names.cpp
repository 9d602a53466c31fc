#include "runtime/reports/launch_names.h"

#include <algorithm>

#include <fmt/ranges.h>

#include "ir/graph_data.h"
#include "ir/op.h"
#include "ir/sources.h"

namespace rlx {
namespace {

using Names = std::vector<std::string>;

/// The parts of a name before its dots that both have: "layers.3.attention" of "layers.3.attention.q" and "layers.3.attention.k".
std::string common_scope(std::string_view a, std::string_view b) {
  std::size_t same = 0;
  for (std::size_t i = 0; i <= std::min(a.size(), b.size()); ++i) {
    const bool ends_a = i == a.size() || a[i] == '.', ends_b = i == b.size() || b[i] == '.';
    if (ends_a && ends_b) same = i;
    if (i == a.size() || i == b.size() || a[i] != b[i]) break;
  }
  return std::string(a.substr(0, same));
}

/// What "layers.3.q.weight" and "layers.3.q.bias" are of: "layers.3.q". Parameters without a common part are listed, a few of them.
std::string layer_of(const std::set<std::string>& params) {
  constexpr std::size_t most = 3;
  std::set<std::string> modules;
  for (const std::string& param : params) modules.insert(param.substr(0, param.rfind('.')));
  if (modules.empty()) return "";
  std::string scope = *modules.begin();
  for (const std::string& module : modules) scope = common_scope(scope, module);
  if (!scope.empty()) return scope;
  const bool more = modules.size() > most;
  return fmt::format("{}{}", fmt::join(modules.begin(), more ? std::next(modules.begin(), most) : modules.end(), ", "),
                     more ? ", ..." : "");
}

class LaunchNamer {
 public:
  explicit LaunchNamer(const Executable::State& state)
      : state_(state), graph_(state.program.graph), follows_(graph_.size()), varies_(graph_.size()) {
    for (std::size_t l = 0; l < launches().size(); ++l)
      for (ValueId v : launches()[l].writes) writer_[v] = l;
    for (const auto& [input, value] : graph_.inputs()) {
      if (input.kind != InputKind::input) kept_[value.id()] = input.name;
      varies_[static_cast<std::size_t>(value.id().node)] = true;
    }
    for (std::size_t id = 0; id < graph_.size(); ++id) {
      follows_[id] = is_backward(static_cast<std::int32_t>(id));
      for (ValueId operand : graph_.node(static_cast<std::int32_t>(id)).operands) {
        follows_[id] = follows_[id] || follows_[static_cast<std::size_t>(operand.node)];
        varies_[id] = varies_[id] || varies_[static_cast<std::size_t>(operand.node)];
      }
    }
  }

  std::vector<LaunchName> names() const {
    std::vector<LaunchName> all;
    for (const Launch& launch : launches()) {
      const std::set<std::int32_t> nodes = computed(launch);
      all.push_back({layer_of(worked_with(launch)), launch.packed ? launch.claim : ops(nodes), pass(nodes)});
    }
    name_others(all);
    return all;
  }

 private:
  const std::vector<Launch>& launches() const { return state_.program.launches; }
  bool is_backward(std::int32_t node) const { return graph_.data().origin(node).backward; }

  /// The nodes between what a launch reads and what it writes.
  std::set<std::int32_t> computed(const Launch& launch) const {
    std::set<std::int32_t> nodes;
    std::vector<std::int32_t> open;
    for (ValueId v : launch.writes)
      if (!launch.packed) open.push_back(v.node);
    while (!open.empty()) {
      const std::int32_t id = open.back();
      open.pop_back();
      if (graph_.node(id).op->kind == OpKind::source || !nodes.insert(id).second) continue;
      for (ValueId operand : graph_.node(id).operands)
        if (!writer_.contains(operand) && !state_.program.views.contains(operand)) open.push_back(operand.node);
    }
    return nodes;
  }

  /// Parameters and states that a launch reads, or that something was made from beforehand; else those that its results are to replace.
  std::set<std::string> worked_with(const Launch& launch) const {
    std::set<std::string> found;
    for (ValueId v : launch.reads) add_kept(v, found);
    for (const auto& [name, value] : graph_.outputs())
      if (found.empty() && std::ranges::find(launch.writes, value.id()) != launch.writes.end()) add_output(name, found);
    return found;
  }

  void add_kept(ValueId value, std::set<std::string>& found) const {
    const ValueId root = state_.program.root(value);
    if (const auto kept = kept_.find(root); kept != kept_.end()) found.insert(kept->second);
    const auto writer = writer_.find(root);
    if (writer == writer_.end() || !state_.is_prepared[writer->second]) return;
    for (ValueId read : launches()[writer->second].reads) add_kept(read, found);
  }

  void add_output(std::string_view name, std::set<std::string>& found) const {
    constexpr std::string_view gradient = "grad_";  // as grad_graph names them
    for (const auto& [value, kept] : kept_)
      if (name == kept || (name.starts_with(gradient) && name.substr(gradient.size()) == kept)) found.insert(kept);
  }

  /// In the order of the nodes. Those of constants alone come last: layers share them, so that they stand before the rest of some.
  std::vector<std::int32_t> in_order(const std::set<std::int32_t>& nodes) const {
    std::vector<std::int32_t> ordered(nodes.begin(), nodes.end());
    std::ranges::stable_partition(ordered, [this](std::int32_t id) { return varies_[static_cast<std::size_t>(id)]; });
    return ordered;
  }

  /// What moves or converts values is left out where there is more.
  std::string ops(const std::set<std::int32_t>& nodes) const {
    constexpr std::size_t most = 4;
    Names main, all;
    for (std::int32_t id : in_order(nodes)) {
      const OpDef* composite = graph_.data().origin(id).composite;
      const OpDef& op = composite ? *composite : *graph_.node(id).op;
      const auto add = [&](Names& to) {
        if (std::ranges::find(to, op.name) == to.end()) to.emplace_back(op.name);
      };
      add(all);
      if (op.kind != OpKind::structure) add(main);
    }
    Names& names = main.empty() ? all : main;
    const bool more = names.size() > most;
    names.resize(std::min(names.size(), most));
    return fmt::format("{}{}", fmt::join(names, ", "), more ? ", ..." : "");
  }

  std::string pass(const std::set<std::int32_t>& nodes) const {
    if (std::ranges::find(follows_, true) == follows_.end()) return "";
    if (std::ranges::any_of(nodes, [this](std::int32_t id) { return is_backward(id); })) return "backward";
    return std::ranges::any_of(nodes, [this](std::int32_t id) { return follows_[static_cast<std::size_t>(id)]; }) ? "update" : "forward";
  }

  /// A launch that works with none lies between those that do.
  static void name_others(std::vector<LaunchName>& all) {
    const std::vector<LaunchName> own = all;
    for (std::size_t l = 0; l < own.size(); ++l) {
      if (!own[l].layer.empty()) continue;
      const auto named = [](const LaunchName& name) { return !name.layer.empty(); };
      const auto here = own.begin() + static_cast<std::ptrdiff_t>(l);
      const auto next = std::find_if(here, own.end(), named);
      const auto last = std::find_if(std::make_reverse_iterator(here), own.rend(), named);
      if (next != own.end() && last != own.rend()) all[l].layer = common_scope(last->layer, next->layer);
    }
  }

  const Executable::State& state_;
  const Graph& graph_;
  std::vector<bool> follows_;              // by node: whether it needs a derivative
  std::vector<bool> varies_;               // by node: whether it needs an input, parameter or state
  std::map<ValueId, std::size_t> writer_;  // the launch, by what it writes
  std::map<ValueId, std::string> kept_;    // names of parameters and states
};

}  // namespace

std::vector<LaunchName> launch_names(const Executable::State& state) { return LaunchNamer(state).names(); }

}  // namespace rlx
