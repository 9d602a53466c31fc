#include "rlx/graph.h"

#include <algorithm>
#include <mutex>

#include <fmt/format.h>

#include "base/hash.h"
#include "base/interruption.h"
#include "ir/graph_data.h"
#include "ir/op.h"
#include "ir/region.h"
#include "ir/sources.h"

namespace rlx {
namespace {

bool is_descendant(const GraphData* graph, const GraphData* ancestor) {
  while (graph && graph != ancestor) graph = graph->parent;
  return graph != nullptr;
}

/// The innermost of the graphs that the operands live in; all must lie on one chain of regions.
GraphData& innermost(const OpDef& op, std::span<const Value> operands) {
  GraphData* graph = nullptr;
  for (const Value& v : operands) {
    if (!v) fail("rlx.{}: an operand is null", op.name);
    if (!graph || is_descendant(&v.graph(), graph)) graph = &v.graph();
    else if (!is_descendant(graph, &v.graph()))
      fail("rlx.{}: operands belong to different graphs '{}' and '{}'", op.name, graph->name, v.graph().name);
  }
  return *graph;
}

bool has_input(const GraphData& graph, std::string_view name) {
  return std::any_of(graph.inputs.begin(), graph.inputs.end(), [&](const auto& entry) { return entry.first.name == name; });
}

void normalize_axes(const OpDef& op, Attrs& attrs, std::span<const Value> operands) {
  if (operands.empty()) return;
  for (std::size_t i = 0; i < op.fields.size(); ++i) {
    if (op.fields[i].role == Role::axis) {
      auto& axis = std::get<std::int64_t>(attrs[i]);
      axis = normalize_axis(op.name, axis, operands[0].type());
    } else if (op.fields[i].role == Role::axes) {
      auto& axes = std::get<std::vector<std::int64_t>>(attrs[i]);
      for (auto& axis : axes) axis = normalize_axis(op.name, axis, operands[0].type());
      auto sorted = axes;
      std::sort(sorted.begin(), sorted.end());
      if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end())
        fail("rlx.{}: an axis is named twice in {}", op.name, to_string(attrs[i]));
    }
  }
}

std::size_t hash_node(const OpDef& op, const Attrs& attrs, const std::vector<ValueId>& operands) {
  std::size_t h = std::hash<std::string_view>{}(op.name);
  for (const Attr& attr : attrs) h = hash_mix(h, hash(attr));
  for (ValueId id : operands) h = hash_mix(hash_mix(h, static_cast<std::size_t>(id.node)), static_cast<std::size_t>(id.result));
  return h;
}

bool same_attrs(const Attrs& a, const Attrs& b) { return std::equal(a.begin(), a.end(), b.begin(), b.end(), equal); }

Values results_of(GraphData& graph, std::int32_t id) {
  Values results;
  for (std::size_t i = 0; i < graph.node(id).results.size(); ++i) results.emplace_back(&graph, ValueId{id, static_cast<std::int32_t>(i)});
  return results;
}

/// Finds the equal node or appends one.
Values intern(GraphData& graph, const OpDef& op, Attrs attrs, std::vector<ValueId> operands) {
  check_interruption();
  const std::size_t h = hash_node(op, attrs, operands);
  for (auto [it, end] = graph.by_hash.equal_range(h); it != end; ++it) {
    const Node& node = graph.node(it->second);
    if (node.op == &op && node.operands == operands && same_attrs(node.attrs, attrs)) return results_of(graph, it->second);
  }
  std::vector<Type> types;
  for (ValueId id : operands) types.push_back(graph.type(id));
  std::vector<Type> results = op.infer ? op.infer(attrs, types) : detail::infer_from_body(op, attrs, types);
  if (results.empty()) fail("rlx.{}: gives no results", op.name);
  for (const Type& type : results)
    for (const Dim& dim : type.shape)
      if (dim.is_static() && dim.value() < 0) fail("rlx.{}: {} has a negative size", op.name, type.to_string());
  const auto id = static_cast<std::int32_t>(graph.nodes.size());
  graph.nodes.push_back({&op, std::move(attrs), std::move(operands), std::move(results)});
  graph.by_hash.emplace(h, id);
  return results_of(graph, id);
}

void check_attrs(const OpDef& op, const Attrs& attrs) {
  if (attrs.size() != op.fields.size()) fail_internal("rlx.{}: {} attributes, needs {}", op.name, attrs.size(), op.fields.size());
  for (std::size_t i = 0; i < attrs.size(); ++i) {
    const Field& field = op.fields[i];
    if (attrs[i].index() != field.kind) fail("rlx.{}: attribute '{}' has the wrong type: {}", op.name, field.name, to_string(attrs[i]));
    if (!field.words.empty() && std::find(field.words.begin(), field.words.end(), std::get<std::string>(attrs[i])) == field.words.end())
      fail("rlx.{}: {} '{}' is unknown (allowed: {})", op.name, field.name, std::get<std::string>(attrs[i]), fmt::join(field.words, ", "));
  }
}

}  // namespace

Value lift(GraphData& region, Value value) {
  if (&value.graph() == &region) return value;
  const auto key = std::pair{&value.graph(), value.id()};
  if (auto it = region.lifted.find(key); it != region.lifted.end()) return it->second;
  if (region.parent != &value.graph()) value = lift(*region.parent, value);
  std::string name = "capture" + std::to_string(region.captures.size());
  while (has_input(region, name)) name += '_';
  Value input = make_input(region, {name, InputKind::input, value.type()});
  region.captures.push_back(value);
  return region.lifted[key] = input;
}

namespace {

/// The homes without a graph. There are never more homes than there were graphs at one time.
struct FreeHomes {
  std::mutex mutex;
  std::vector<std::unique_ptr<GraphHome>> homes;
};
FreeHomes& free_homes() {
  static auto* const all = new FreeHomes;  // never destroyed: graphs may be static, too
  return *all;
}

}  // namespace

GraphData::GraphData() {
  FreeHomes& free = free_homes();
  const std::scoped_lock lock(free.mutex);
  if (free.homes.empty()) free.homes.push_back(std::make_unique<GraphHome>());
  home = free.homes.back().release();
  free.homes.pop_back();
  home->graph = this;
}

GraphData::~GraphData() {
  ++home->serial;
  FreeHomes& free = free_homes();
  const std::scoped_lock lock(free.mutex);
  free.homes.emplace_back(home);
}

Value::Value(GraphData* graph, ValueId id) : home_(graph->home), graph_serial_(graph->home->serial), id_(id) {}

GraphData& Value::graph() const {
  if (!home_) fail("a null value is used where an operand is needed");
  if (home_->serial != graph_serial_)
    fail("a value is used after its graph is gone: it belonged to a region that has ended, or the last copy of its Graph is");
  return *home_->graph;
}

const Type& Value::type() const { return graph().type(id_); }

const Dim& Value::dim(std::int64_t axis) const { return type().dim(normalize_axis("dim", axis, type())); }

Graph::Graph(std::string name) : data_(std::make_shared<GraphData>()) { data_->name = std::move(name); }
Graph::Graph(std::string name, GraphData& parent) : Graph(std::move(name)) { data_->parent = &parent; }

const std::string& Graph::name() const { return data_->name; }
std::size_t Graph::size() const { return data_->nodes.size(); }
const Node& Graph::node(std::int32_t id) const { return data_->node(id); }
const std::vector<std::pair<Input, Value>>& Graph::inputs() const { return data_->inputs; }
const std::vector<std::pair<std::string, Value>>& Graph::outputs() const { return data_->outputs; }
const Type& Graph::type(ValueId id) const { return data_->type(id); }
const Values& Graph::captures() const { return data_->captures; }

Value Graph::add_input(Input input, std::source_location at) {
  const Operand place(Value(), at);
  if (input.name.empty()) fail("graph '{}': an input needs a name", name());
  if (has_input(*data_, input.name)) fail("graph '{}': input '{}' exists already", name(), input.name);
  std::map<std::string, std::int64_t> bounds = symbols();
  for (const Dim& dim : input.type.shape) {
    if (!dim.known_non_negative()) fail("graph '{}': input '{}': size {} is negative", name(), input.name, dim.to_string());
    dim.collect_symbols(bounds);  // throws for a second bound
  }
  return make_input(*data_, std::move(input));
}

Value Graph::input(std::string name, Dims shape, DType dtype, std::source_location at) {
  return add_input({std::move(name), InputKind::input, {dtype, std::move(shape)}}, at);
}
Value Graph::param(std::string name, Dims shape, DType dtype, std::source_location at) {
  return add_input({std::move(name), InputKind::param, {dtype, std::move(shape)}}, at);
}
Value Graph::state(std::string name, Dims shape, DType dtype, std::source_location at) {
  return add_input({std::move(name), InputKind::state, {dtype, std::move(shape)}}, at);
}
Value Graph::constant(Array value) { return make_constant(*data_, std::move(value)); }

void Graph::output(std::string name, Operand value) {
  if (!value) fail("graph '{}': output '{}' is null", data_->name, name);
  for (const auto& [other, v] : data_->outputs)
    if (other == name) fail("graph '{}': output '{}' exists already", data_->name, name);
  if (!is_descendant(data_.get(), &value.graph()))
    fail("graph '{}': output '{}' belongs to graph '{}'", data_->name, name, value.graph().name);
  data_->outputs.emplace_back(std::move(name), lift(*data_, value));
}

Graph Graph::snapshot() const {
  if (data_->parent) fail("graph '{}': a region under construction has no snapshot", name());
  Graph copy(name());
  GraphData& to = *copy.data_;
  to.nodes = data_->nodes;
  to.origins = data_->origins;
  to.by_hash = data_->by_hash;
  for (const auto& [input, value] : data_->inputs) to.inputs.emplace_back(input, Value(&to, value.id()));
  for (const auto& [output, value] : data_->outputs) to.outputs.emplace_back(output, Value(&to, value.id()));
  return copy;
}

std::map<std::string, std::int64_t> Graph::symbols() const {
  std::map<std::string, std::int64_t> found;
  for (const auto& [input, value] : data_->inputs)
    for (const Dim& dim : input.type.shape) dim.collect_symbols(found);
  return found;
}

Values apply(const OpDef& op, Attrs attrs, std::span<const Value> operands) {
  if (op.arity >= 0) detail::check_arity(op.name, static_cast<std::size_t>(op.arity), operands.size());
  if (op.kind == OpKind::source && !operands.empty()) fail("rlx.{}: takes no operands, given {}", op.name, operands.size());
  if (operands.empty()) fail("rlx.{}: needs at least one operand", op.name);
  check_attrs(op, attrs);
  GraphData& graph = innermost(op, operands);
  normalize_axes(op, attrs, operands);
  std::vector<ValueId> ids;
  for (const Value& v : operands) ids.push_back(lift(graph, v).id());
  return intern(graph, op, std::move(attrs), std::move(ids));
}

Values apply(GraphData& graph, const OpDef& op, Attrs attrs) {
  if (op.arity >= 0) detail::check_arity(op.name, static_cast<std::size_t>(op.arity), 0);
  else if (op.kind != OpKind::source) fail("rlx.{}: needs at least one operand", op.name);
  check_attrs(op, attrs);
  return intern(graph, op, std::move(attrs), {});
}

bool structurally_equal(const Graph& a, const Graph& b) {
  if (a.size() != b.size() || a.inputs().size() != b.inputs().size() || a.outputs().size() != b.outputs().size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const Node &x = a.node(static_cast<std::int32_t>(i)), &y = b.node(static_cast<std::int32_t>(i));
    if (x.op != y.op || x.operands != y.operands || x.results != y.results || !same_attrs(x.attrs, y.attrs)) return false;
  }
  for (std::size_t i = 0; i < a.inputs().size(); ++i)
    if (a.inputs()[i].second.id() != b.inputs()[i].second.id()) return false;
  for (std::size_t i = 0; i < a.outputs().size(); ++i)
    if (a.outputs()[i].first != b.outputs()[i].first || a.outputs()[i].second.id() != b.outputs()[i].second.id()) return false;
  return true;
}

std::size_t structural_hash(const Graph& graph) {
  std::size_t h = graph.size();
  for (std::size_t i = 0; i < graph.size(); ++i) {
    const Node& node = graph.node(static_cast<std::int32_t>(i));
    h = hash_mix(h, hash_node(*node.op, node.attrs, node.operands));
  }
  for (const auto& [name, value] : graph.outputs()) h = hash_mix(h, static_cast<std::size_t>(value.id().node));
  return h;
}

}  // namespace rlx
