#include "ir/verifier.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "ir/graph_data.h"
#include "ir/op.h"
#include "ir/sources.h"

namespace rlx {
namespace {

class Verifier {
 public:
  Verifier(const Graph& graph, std::string_view pass) : graph_(graph), pass_(pass) {}

  void run() {
    for (id_ = 0; id_ < static_cast<std::int32_t>(graph_.size()); ++id_) node(graph_.node(id_));
    id_ = -1;
    inputs();
    outputs();
  }

 private:
  template <class... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> text, Args&&... args) const {
    const std::string reason = fmt::format(text, std::forward<Args>(args)...);
    if (id_ < 0) fail_internal("{}: graph '{}': {}", pass_, graph_.name(), reason);
    const OpDef* op = graph_.node(id_).op;
    fail_internal("{}: graph '{}': %{} {}: {}", pass_, graph_.name(), id_, op ? op->name : "without op", reason);
  }

  void node(const Node& node) const {
    if (!node.op) refuse("has no op");
    const auto known = op_registry().find(node.op->name);
    if (known == op_registry().end() || known->second != node.op) refuse("is not in the registry");
    attributes(node);
    std::vector<Type> types;
    for (ValueId operand : node.operands) {
      if (operand.node < 0 || operand.node >= id_) refuse("operand %{} does not come before it", operand.node);
      check_result(operand);
      types.push_back(graph_.type(operand));
    }
    if (node.op->arity >= 0 && node.operands.size() != static_cast<std::size_t>(node.op->arity))
      refuse("has {} operands, takes {}", node.operands.size(), node.op->arity);
    if (node.op->kind == OpKind::source ? !types.empty() : node.op->arity < 0 && types.empty()) refuse("has {} operands", types.size());
    if (node.results.empty()) refuse("has no results");
    check_types(node, types);
  }

  void attributes(const Node& node) const {
    const auto& fields = node.op->fields;
    if (node.attrs.size() != fields.size()) refuse("has {} attributes, needs {}", node.attrs.size(), fields.size());
    for (std::size_t i = 0; i < fields.size(); ++i) {
      if (node.attrs[i].index() != fields[i].kind)
        refuse("attribute '{}' has the wrong type: {}", fields[i].name, to_string(node.attrs[i]));
      const auto* text = std::get_if<std::string>(&node.attrs[i]);
      if (text && !fields[i].words.empty() && std::find(fields[i].words.begin(), fields[i].words.end(), *text) == fields[i].words.end())
        refuse("attribute '{}' is '{}'", fields[i].name, *text);
      const auto* region = std::get_if<Region>(&node.attrs[i]);
      if (!region || !*region) continue;
      if (!(*region)->captures().empty()) refuse("region '{}' is not closed: it refers to values of another graph", (*region)->name());
      verify(**region, fmt::format("{}: graph '{}': %{} {}", pass_, graph_.name(), id_, node.op->name));
    }
  }

  void check_types(const Node& node, const std::vector<Type>& types) const {
    std::vector<Type> inferred;
    try {
      inferred = node.op->infer ? node.op->infer(node.attrs, types) : detail::infer_from_body(*node.op, node.attrs, types);
    } catch (const Error& error) {  // what would be a user's fault in a builder is the pass's fault here
      refuse("{}", error.what());
    }
    if (inferred.size() != node.results.size()) refuse("has {} results, its rule gives {}", node.results.size(), inferred.size());
    for (std::size_t i = 0; i < inferred.size(); ++i)
      if (!(inferred[i] == node.results[i]))
        refuse("result {} is {}, its rule gives {}", i, node.results[i].to_string(), inferred[i].to_string());
  }

  void check_result(ValueId id) const {
    const std::size_t results = graph_.node(id.node).results.size();
    if (id.result < 0 || static_cast<std::size_t>(id.result) >= results)
      refuse("%{} has no result {} (it has {})", id.node, id.result, results);
  }

  void check_value(std::string_view name, const Value& value) const {
    if (!value || &value.graph() != &graph_.data()) refuse("'{}' is a value of another graph", name);
    if (value.id().node < 0 || value.id().node >= static_cast<std::int32_t>(graph_.size()))
      refuse("'{}' is %{}, which does not exist", name, value.id().node);
    check_result(value.id());
  }

  void inputs() const {
    std::set<std::string_view> names;
    for (const auto& [input, value] : graph_.inputs()) {
      if (input.name.empty() || !names.insert(input.name).second) refuse("input name '{}' is empty or taken", input.name);
      check_value(input.name, value);
      const Node& node = graph_.node(value.id().node);
      if (!is_input(node)) refuse("input '{}' is %{}, a {}", input.name, value.id().node, node.op->name);
      const Input made = input_from(node.attrs);
      if (made.name != input.name || made.kind != input.kind || !(made.type == input.type))
        refuse("input '{}' {} is listed, its node is '{}' {}", input.name, input.type.to_string(), made.name, made.type.to_string());
    }
    const auto nodes = std::count_if(graph_.data().nodes.begin(), graph_.data().nodes.end(), is_input);
    if (nodes != static_cast<std::ptrdiff_t>(names.size())) refuse("{} inputs are listed, {} nodes are inputs", names.size(), nodes);
    graph_.symbols();
  }

  void outputs() const {
    std::set<std::string_view> names;
    for (const auto& [name, value] : graph_.outputs()) {
      if (!names.insert(name).second) refuse("output name '{}' is taken", name);
      check_value(name, value);
    }
  }

  const Graph& graph_;
  std::string_view pass_;
  std::int32_t id_ = -1;  // of the node being checked
};

}  // namespace

void verify(const Graph& graph, std::string_view pass) { Verifier(graph, pass).run(); }

}  // namespace rlx
