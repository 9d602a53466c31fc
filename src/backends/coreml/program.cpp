#include "backends/coreml/program.h"

#include "backends/coreml/blocks.h"
#include "backends/coreml/operations.h"
#include "backends/coreml/real_parts.h"
#include "ir/array_type.h"
#include "ir/rebuild.h"
#include "ir/reference.h"
#include "ir/sources.h"
#include "passes/exact_activations.h"
#include "passes/expand.h"
#include "quant/block_parts.h"

namespace rlx::coreml {
namespace {

constexpr int most_axes = 5;

/// The words for who can read a program: the opset, and the version of the message Model.
struct Version {
  const char* opset;
  std::uint64_t specification;
};
Version version_of(Target target) {
  switch (target) {
    case Target::ios16: return {"CoreML6", 7};
    case Target::ios17: return {"CoreML7", 8};
    case Target::ios18: return {"CoreML8", 9};
    case Target::ios26: return {"CoreML9", 10};
  }
  fail_internal("coreml: target {}", static_cast<int>(target));
}

/// What users pass and get: CoreML's arrays have an axis at least, and elements of f32, f16 or i32.
struct Feature {
  std::string name, description;
  Element element;
  Sizes shape;

  explicit Feature(std::string of, const Tensor& value, const Type& type)
      : name(std::move(of)),
        description(type.to_string()),
        element(value.element == Element::boolean ? Element::i32 : value.element),
        shape(value.shape.empty() ? Sizes{1} : value.shape) {}

  ProtobufWriter message() const {
    constexpr std::uint32_t array_type = 5;
    return described(ProtobufWriter().message(array_type, array()));
  }
  ProtobufWriter state_message() const {
    constexpr std::uint32_t state_type = 8, array_type = 1;
    return described(ProtobufWriter().message(state_type, ProtobufWriter().message(array_type, array())));
  }
  Tensor tensor() const { return {name, element, shape}; }

 private:
  ProtobufWriter array() const {
    const std::uint64_t type = element == Element::f32 ? 65568 : element == Element::f16 ? 65552 : 131104;
    return std::move(ProtobufWriter().packed(1, shape).integer(2, type));
  }
  ProtobufWriter described(const ProtobufWriter& type) const {
    return std::move(ProtobufWriter().text(1, name).text(2, description).message(3, type));
  }
};

/// Values of a graph: tensors of the program, or what is the same in every run and may become one.
struct Held {
  std::optional<Tensor> tensor = {};
  std::optional<Weight> weight = {};
};
using HeldValues = std::map<ValueId, Held>;

class Emitter {
 public:
  /// `keeps_blocks`: weights in blocks are decoded by the device.
  Emitter(const Bindings& bindings, bool keeps_blocks) : bindings_(bindings), keeps_blocks_(keeps_blocks) {}

  /// The outputs; `values` has the inputs.
  Tensors emit(Body& body, const Graph& graph, HeldValues values) const {
    const std::vector<ValueId> outputs = output_ids(graph);
    for (const std::int32_t id : needed_nodes(graph.data(), outputs)) {
      if (fold(graph, id, values)) continue;  // of any type: angles of f64 become f32 behind it
      for (const Type& type : graph.node(id).results) check(type, "a result of", std::string(graph.node(id).op->name));
      const Tensors made = results(body, graph, id, values);
      for (std::size_t r = 0; r < made.size(); ++r) values[{id, static_cast<std::int32_t>(r)}] = {made[r], {}};
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
  /// Finds what follows from constants alone and is small, or a weight in another form, and says whether it did.
  bool fold(const Graph& graph, std::int32_t id, HeldValues& values) const {
    const Node& node = graph.node(id);
    if (const Array* constant = constant_value(node)) return keep(values, id, 0, {*constant, {}, "a constant"});
    if (has_regions(node)) return false;
    if (node.op->name == "broadcast" && element_of(node.results[0].dtype)) return false;
    std::vector<Array> operands;
    for (const ValueId v : node.operands) {
      const std::optional<Weight>& weight = values.at(v).weight;
      if (!weight || !weight->blocks.empty()) return false;
      operands.push_back(weight->array);
    }
    if (operands.empty()) return evaluate(graph, id, operands, values);
    const Weight& first = *values.at(node.operands[0]).weight;
    if (keeps_blocks_ && node.op->name == "decode_blocks" && find_block_parts(std::get<std::string>(node.attrs[0])))
      return keep(values, id, 0, {first.array, std::get<std::string>(node.attrs[0]), first.name});
    if (widens(graph, node) && first.array.size() > most_elements) return keep(values, id, 0, first);
    return evaluate(graph, id, operands, values);
  }
  bool evaluate(const Graph& graph, std::int32_t id, const std::vector<Array>& operands, HeldValues& values) const {
    const Node& node = graph.node(id);
    for (const Type& type : node.results) {
      const bool runs_there = node.op->name != "decode_blocks" && element_of(type.dtype);
      if (type.size().evaluate(bindings_) > (runs_there ? most_elements : most_foreign_elements)) return false;
    }
    for (std::size_t i = 0; i < operands.size(); ++i)
      if (operands[i].dtype() != graph.type(node.operands[i]).dtype) return false;
    const std::vector<Array> results = evaluate_node(graph, id, bindings_, operands, {});
    for (std::size_t r = 0; r < results.size(); ++r) keep(values, id, r, {results[r], {}, std::string(node.op->name)});
    return true;
  }
  static bool keep(HeldValues& values, std::int32_t id, std::size_t result, Weight weight) {
    values[{id, static_cast<std::int32_t>(result)}] = {{}, std::move(weight)};
    return true;
  }
  /// A cast to f32 after which the numbers are the same.
  static bool widens(const Graph& graph, const Node& node) {
    const DType from = graph.type(node.operands[0]).dtype;
    return node.op->name == "cast" && node.results[0].dtype == f32 && (from == bf16 || from == f16);
  }

  Tensors results(Body& body, const Graph& graph, std::int32_t id, HeldValues& values) const {
    const Node& node = graph.node(id);
    const Row<Rule>* const row = table().taking(graph, node);
    if (!row) {
      const Row<Rule>* const known = table().find(node.op->name);
      fail("coreml: {} with a result of {} cannot be exported: {}", node.op->name, node.results[0].to_string(),
           known ? known->reason : "it has no form there");
    }
    Tensors operands;
    for (std::size_t i = 0; i < node.operands.size(); ++i) operands.push_back(operand(body, graph, node, i, values));
    const FindWeight weight = [&](std::size_t i) {
      const std::optional<Weight>& held = values.at(node.operands[i]).weight;
      return held && (is_float(held->array.dtype()) || !held->blocks.empty()) ? &*held : nullptr;
    };
    return row->rule({{graph, node, bindings_}, body, operands, region_, weight});
  }

  Tensor operand(Body& body, const Graph& graph, const Node& node, std::size_t i, HeldValues& values) const {
    const ValueId v = node.operands[i];
    const std::optional<Weight>& weight = values.at(v).weight;
    const bool is_right = i == 1 && (node.op->name == "dot" || node.op->name == "conv");
    const bool is_table = i == 0 && node.op->name == "gather";
    if (weight && node.op->name == "rope" && i == 2) return {};
    if (weight && (weight->blocks.empty() ? is_right && is_float(weight->array.dtype()) : is_table || (is_right && node.op->name == "dot")))
      return input(std::string(node.op->name), graph.type(v));  // the row asks for the weight
    return node.op->kind == OpKind::scalar ? tensor(body, graph, v, values) : whole(body, graph, v, values);
  }

  Tensor tensor(Body& body, const Graph& graph, ValueId v, HeldValues& values) const {
    Held& held = values.at(v);
    if (held.tensor) return *held.tensor;
    const Weight& weight = *held.weight;
    check(graph.type(v), "a result of", std::string(graph.node(v.node).op->name));
    if (!weight.blocks.empty()) held.tensor = coreml::whole(body, decode_on_device(body, weight.array, weight.blocks, Element::f32));
    else if (is_float(graph.type(v).dtype)) held.tensor = body.constant(weight.array, *element_of(graph.type(v).dtype), weight.name);
    else held.tensor = body.constant(weight.array, weight.name);
    return *held.tensor;
  }
  /// A value with all its elements: operations of elements take axes of size 1 for any size, and so results of broadcasts have them.
  Tensor whole(Body& body, const Graph& graph, ValueId v, HeldValues& values) const {
    return stretched(body, tensor(body, graph, v, values), sizes_of(graph.type(v).shape, bindings_));
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

  static constexpr std::int64_t most_elements = 4096;                           // of what is computed here
  static constexpr std::int64_t most_foreign_elements = std::int64_t{1} << 28;  // the same of what the device cannot compute
  const Bindings& bindings_;
  bool keeps_blocks_;
  EmitRegion region_ = [this](Body& block, const Graph& region, const Tensors& operands) {
    HeldValues values;
    for (std::size_t i = 0; i < operands.size(); ++i) values[region.inputs()[i].second.id()] = {operands[i], {}};
    return emit(block, region, std::move(values));
  };
};

/// The value of a feature as the program computes with it.
Tensor from_feature(Body& body, const Tensor& feature, const Tensor& wanted) {
  return convert(body, reshape(body, feature, wanted.shape), wanted.element);
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

/// With pairs in place of complex numbers.
Graph without_complex(const Graph& graph) {
  try {
    return expand(in_real_parts(graph), has_row, has_row);
  } catch (const InternalError&) {
    throw;
  } catch (const Error& error) {
    fail("coreml: {}", error.what());
  }
}

ProtobufWriter metadata(const CoreMlOptions& options) {
  ProtobufWriter result;
  const std::pair<std::uint32_t, const std::string&> words[] = {
      {1, options.description}, {2, options.version}, {3, options.author}, {4, options.license}};
  for (const auto& [field, word] : words)
    if (!word.empty()) result.text(field, word);
  const ProtobufWriter source = std::move(ProtobufWriter().text(1, "made_by").text(2, "rlx"));
  result.message(100, source);
  return result;
}

/// A function of the package, and what the package says of it.
class FunctionMaker {
 public:
  FunctionMaker(ProgramParts& parts, const Graph& graph, const NamedArrays& weights, const Bindings& sizes)
      : parts_(parts),
        weights_(weights),
        bindings_(sizes),
        emitter_(bindings_, !parts.target_is_given || parts.target >= Target::ios18),
        body_(parts) {
    parts.begin_function();
    for (const auto& [input, value] : graph.inputs()) add_input(input, value.id());
    std::vector<std::string> names;
    for (const auto& [name, value] : graph.outputs()) names.push_back(states_.contains(name) ? std::string() : parts.name(name));
    const Tensors results = emitter_.emit(body_, graph, std::move(values_));
    for (std::size_t i = 0; i < results.size(); ++i) add_output(graph.outputs()[i], names[i], results[i]);
  }

  ProtobufWriter function(const char* opset) const {
    ProtobufWriter result = inputs_;
    return std::move(result.text(2, opset).entry(3, opset, body_.block({}, outputs_)));
  }
  /// As fields with these numbers.
  ProtobufWriter features(std::uint32_t input, std::uint32_t output, std::uint32_t state) const {
    ProtobufWriter result;
    for (const Feature& feature : read_) result.message(input, feature.message());
    for (const Feature& feature : written_) result.message(output, feature.message());
    for (const auto& [name, feature] : states_) result.message(state, feature.state_message());
    return result;
  }

 private:
  void add_input(const Input& input, ValueId value) {
    if (input.kind == InputKind::param) {
      values_[value] = {{}, weight(input)};
      return;
    }
    const Tensor wanted = emitter_.input(input.name, input.type);
    Feature feature(parts_.name(input.name), wanted, input.type);
    if (input.kind == InputKind::state) return add_state(input, value, wanted, std::move(feature));
    inputs_.message(1, named_type(feature.tensor()));
    values_[value] = {from_feature(body_, feature.tensor(), wanted), {}};
    read_.push_back(std::move(feature));
  }

  void add_state(const Input& input, ValueId value, const Tensor& wanted, Feature feature) {
    if (!is_float(input.type.dtype))
      fail("coreml: state '{}' is {} (allowed: floats, which are f16 there)", input.name, input.type.to_string());
    parts_.needs(Target::ios18, "states");
    feature.element = Element::f16;
    inputs_.message(1, named_state(feature.tensor()));
    const Tensor held = body_.add("read_state", {{"input", feature.tensor()}}, feature.element, feature.shape);
    values_[value] = {from_feature(body_, held, wanted), {}};
    states_.emplace(input.name, std::move(feature));
  }

  Weight weight(const Input& input) const {
    const auto value = weights_.find(input.name);
    if (value == weights_.end()) fail("coreml: parameter '{}' has no value", input.name);
    const Array& array = value->second;
    if (array.dtype() != input.type.dtype || array.shape() != sizes_of(input.type.shape, bindings_))
      fail("coreml: parameter '{}' is {}, its value {}", input.name, input.type.to_string(), type_of(array).to_string());
    return {array, {}, input.name};
  }

  void add_output(const std::pair<std::string, Value>& output, const std::string& name, const Tensor& result) {
    if (const auto state = states_.find(output.first); state != states_.end()) {
      const Feature& feature = state->second;
      body_.write_state(feature.tensor(), reshape(body_, convert(body_, result, feature.element), feature.shape));
      return;
    }
    const Feature feature(name, result, output.second.type());
    outputs_.push_back(body_.named(reshape(body_, convert(body_, result, feature.element), feature.shape), feature.name));
    written_.push_back(feature);
  }

  ProgramParts& parts_;
  const NamedArrays& weights_;
  const Bindings& bindings_;
  Emitter emitter_;
  Body body_;
  HeldValues values_;
  ProtobufWriter inputs_;
  Tensors outputs_;
  std::vector<Feature> read_, written_;
  std::map<std::string, Feature> states_;
};

}  // namespace

MadeProgram make_program(const SavedGraph& saved, const CoreMlOptions& options) {
  MadeProgram made;
  made.parts.target = options.minimum_target == 0 ? Target::ios17 : static_cast<Target>(options.minimum_target);
  made.parts.target_is_given = options.minimum_target != 0;
  made.parts.multiplies_f16 = options.precision == Precision::f16;
  const Graph graph = with_decoded_tables(without_complex(expand(with_exact_activations(saved.graph), has_row, has_row)));
  const NamedArrays weights = in_real_parts(saved.weights);
  std::vector<CoreMlFunction> wanted = options.functions;
  const bool is_one = wanted.empty();
  if (is_one) wanted.push_back({"main", {}});
  else made.parts.needs(Target::ios18, "several functions");
  std::vector<std::pair<std::string, std::unique_ptr<FunctionMaker>>> functions;
  for (CoreMlFunction& function : wanted) {
    function.sizes.insert(options.sizes.begin(), options.sizes.end());
    functions.emplace_back(function.name, std::make_unique<FunctionMaker>(made.parts, graph, weights, function.sizes));
  }
  const Version version = version_of(made.parts.target);
  ProtobufWriter program, features;
  program.integer(1, 1);
  for (const auto& [name, function] : functions) {
    program.entry(2, name, function->function(version.opset));
    if (is_one) {
      features.append(function->features(1, 10, 13));
    } else {
      ProtobufWriter described = std::move(ProtobufWriter().text(1, name));
      described.append(function->features(2, 3, 6));
      features.message(20, described);
    }
  }
  if (!is_one) features.text(21, functions[0].first);
  features.message(100, metadata(options));
  made.model.integer(1, version.specification).message(2, features).message(502, program);
  return made;
}

}  // namespace rlx::coreml
