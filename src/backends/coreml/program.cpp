#include "backends/coreml/program.h"

#include "backends/coreml/operations.h"
#include "ir/array_type.h"
#include "ir/rebuild.h"
#include "ir/reference.h"
#include "ir/sources.h"
#include "passes/exact_activations.h"
#include "passes/expand.h"

namespace rlx::coreml {
namespace {

constexpr const char* opset = "CoreML7";
constexpr std::uint64_t specification_version = 8;  // iOS 17, macOS 14
constexpr int most_axes = 5;

/// What users pass and get: CoreML's arrays have an axis at least, and elements of f32, f16 or i32.
struct Feature {
  std::string name;
  Element element;
  Sizes shape;

  explicit Feature(std::string of, const Tensor& value)
      : name(std::move(of)),
        element(value.element == Element::boolean ? Element::i32 : value.element),
        shape(value.shape.empty() ? Sizes{1} : value.shape) {}

  ProtobufWriter message() const {
    const std::uint64_t type = element == Element::f32 ? 65568 : element == Element::f16 ? 65552 : 131104;
    ProtobufWriter array, result;
    array.packed(1, shape).integer(2, type);
    result.text(1, name).message(3, ProtobufWriter().message(5, array));
    return result;
  }
};

class Emitter {
 public:
  Emitter(const Bindings& bindings) : bindings_(bindings) {}

  /// The outputs; `inputs` by position. `known`: values of inputs that are the same in every run.
  Tensors emit(Body& body, const Graph& graph, const Tensors& inputs, std::map<ValueId, Array> known = {}) const {
    std::map<std::int32_t, Tensors> values;
    for (std::size_t i = 0; i < inputs.size(); ++i) values[graph.inputs()[i].second.id().node] = {inputs[i]};
    const std::vector<ValueId> outputs = output_ids(graph);
    for (const std::int32_t id : needed_nodes(graph.data(), outputs)) {
      for (const Type& type : graph.node(id).results) check(type, "a result of", std::string(graph.node(id).op->name));
      values[id] = fold(graph, id, known) ? constants(body, graph, id, known) : results(body, graph, id, values);
    }
    Tensors all;
    for (const ValueId v : outputs) all.push_back(whole(body, graph, v, values));
    return all;
  }

  Tensor input(const std::string& name, const Type& type) const {
    check(type, "input", name);
    return {{}, *element_of(type.dtype), sizes_of(type.shape, bindings_)};
  }

 private:
  /// Computes what follows from constants alone and is small, or a weight to decode, and says whether it did.
  bool fold(const Graph& graph, std::int32_t id, std::map<ValueId, Array>& known) const {
    constexpr std::int64_t most_elements = 4096;
    const Node& node = graph.node(id);
    if (const Array* constant = constant_value(node)) return known[{id, 0}] = *constant, true;
    if (node.op->name == "broadcast") return false;
    std::vector<Array> operands;
    for (const ValueId v : node.operands) {
      const auto value = known.find(v);
      if (value == known.end()) return false;
      operands.push_back(value->second);
    }
    if (has_regions(node) || operands.empty()) return false;
    const bool decodes = node.op->name == "decode_blocks";
    for (const Type& type : node.results)
      if (!decodes && type.size().evaluate(bindings_) > most_elements) return false;
    const std::vector<Array> results = evaluate_node(graph, id, bindings_, operands, {});
    for (std::size_t r = 0; r < results.size(); ++r) known[{id, static_cast<std::int32_t>(r)}] = results[r];
    return true;
  }
  static Tensors constants(Body& body, const Graph& graph, std::int32_t id, const std::map<ValueId, Array>& known) {
    Tensors all;
    for (std::size_t r = 0; r < graph.node(id).results.size(); ++r)
      all.push_back(body.constant(known.at({id, static_cast<std::int32_t>(r)})));
    return all;
  }

  Tensors results(Body& body, const Graph& graph, std::int32_t id, const std::map<std::int32_t, Tensors>& values) const {
    const Node& node = graph.node(id);
    const Row<Rule>* const row = table().taking(graph, node);
    if (!row) {
      const Row<Rule>* const known = table().find(node.op->name);
      fail("coreml: {} with a result of {} cannot be exported: {}", node.op->name, node.results[0].to_string(),
           known ? known->reason : "it has no form there");
    }
    Tensors operands;
    for (const ValueId v : node.operands) {
      const bool stretches = node.op->kind == OpKind::scalar;
      operands.push_back(stretches ? values.at(v.node)[static_cast<std::size_t>(v.result)] : whole(body, graph, v, values));
    }
    return row->rule({{graph, node, bindings_}, body, operands, region_});
  }

  /// A value with all its elements: operations of elements take axes of size 1 for any size, and so results of broadcasts have them.
  Tensor whole(Body& body, const Graph& graph, ValueId v, const std::map<std::int32_t, Tensors>& values) const {
    const Tensor& value = values.at(v.node)[static_cast<std::size_t>(v.result)];
    return stretched(body, value, sizes_of(graph.type(v).shape, bindings_));
  }

  /// What CoreML's tensors can be.
  void check(const Type& type, std::string_view what, const std::string& name) const {
    if (!element_of(type.dtype))
      fail("coreml: {} '{}' is {}: CoreML computes no {} (allowed: f32, f16, bf16, i32, bool, and integers below 32 bits)", what, name,
           type.to_string(), rlx::name(type.dtype));
    if (type.rank() > most_axes) fail("coreml: {} '{}' is {}: CoreML has at most {} axes", what, name, type.to_string(), most_axes);
    for (const std::int64_t size : sizes_of(type.shape, bindings_))
      if (size == 0) fail("coreml: {} '{}' is {}, which has no elements: CoreML has no such arrays", what, name, type.to_string());
  }

  const Bindings& bindings_;
  EmitRegion region_ = [this](Body& block, const Graph& region, const Tensors& operands) { return emit(block, region, operands); };
};

/// The value of a feature as the program computes with it.
Tensor from_feature(Body& body, const Feature& feature, const Tensor& wanted) {
  return convert(body, reshape(body, {feature.name, feature.element, feature.shape}, wanted.shape), wanted.element);
}

/// Rows of blocks that are read and then decoded are decoded and then read: CoreML has them as numbers.
Graph with_decoded_tables(const Graph& graph) {
  Rebuilder out(graph);
  for (const std::int32_t id : out.needed()) {
    const Node& node = graph.node(id);
    const Node* const read = node.op->name == "decode_blocks" ? &graph.node(node.operands[0].node) : nullptr;
    if (!read || read->op->name != "gather") {
      out.copy(id);
      continue;
    }
    const Value table = emit(out.data(), *node.op, node.attrs, std::array{out.value(read->operands[0])})[0];
    Attrs attrs = read->attrs;
    auto& sizes = std::get<Dims>(attrs[5]);
    if (!(sizes.back() == graph.type(read->operands[0]).shape.back()))
      fail("coreml: {} reads parts of blocks", node.results[0].to_string());
    sizes.back() = table.shape().back();
    out.replace(id, emit(out.data(), *read->op, attrs, std::array{table, out.value(read->operands[1])}));
  }
  return out.finish();
}

/// What has no row takes its body or its expansion, if there is one.
bool has_row(const Graph& graph, const Node& node) { return table().taking(graph, node) != nullptr; }

ProtobufWriter metadata(const std::string& description) {
  ProtobufWriter result;
  if (!description.empty()) result.text(1, description);
  const ProtobufWriter source = std::move(ProtobufWriter().text(1, "made_by").text(2, "rlx"));
  result.message(100, source);
  return result;
}

}  // namespace

MadeProgram make_program(const SavedGraph& saved, const Bindings& bindings, const std::string& description) {
  MadeProgram made;
  const Graph graph = with_decoded_tables(expand(with_exact_activations(saved.graph), has_row, has_row));
  const Emitter emitter(bindings);
  Body body(made.parts);
  ProtobufWriter function, features;
  Tensors inputs;
  std::map<ValueId, Array> known;
  for (const auto& [input, value] : graph.inputs()) {
    const Tensor wanted = emitter.input(input.name, input.type);
    if (input.kind == InputKind::state)
      fail("coreml: '{}' is a state: a package has none (its value can be an input and an output)", input.name);
    if (input.kind == InputKind::param) {
      const auto weight = saved.weights.find(input.name);
      if (weight == saved.weights.end()) fail("coreml: parameter '{}' has no value", input.name);
      const Array& array = weight->second;
      if (array.dtype() != input.type.dtype || array.shape() != sizes_of(input.type.shape, bindings))
        fail("coreml: parameter '{}' is {}, its value {}", input.name, input.type.to_string(), type_of(array).to_string());
      known.emplace(value.id(), array);
      inputs.push_back(body.constant(array));
      continue;
    }
    const Feature feature(made.parts.name(input.name), wanted);
    function.message(1, named_type({feature.name, feature.element, feature.shape}));
    features.message(1, feature.message());
    inputs.push_back(from_feature(body, feature, wanted));
  }
  std::vector<std::string> names;
  for (const auto& [name, value] : graph.outputs()) names.push_back(made.parts.name(name));
  const Tensors results = emitter.emit(body, graph, inputs, std::move(known));
  Tensors outputs;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const Feature feature(names[i], results[i]);
    outputs.push_back(body.named(reshape(body, convert(body, results[i], feature.element), feature.shape), feature.name));
    features.message(10, feature.message());
  }
  function.text(2, opset).entry(3, opset, body.block({}, outputs));
  const ProtobufWriter program = std::move(ProtobufWriter().integer(1, 1).entry(2, "main", function));
  features.message(100, metadata(description));
  made.model.integer(1, specification_version).message(2, features).message(502, program);
  return made;
}

}  // namespace rlx::coreml
