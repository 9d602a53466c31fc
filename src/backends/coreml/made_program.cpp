#include "backends/coreml/made_program.h"

#include <algorithm>

#include "backends/coreml/blocks.h"
#include "backends/coreml/feature.h"
#include "backends/coreml/operations.h"
#include "backends/coreml/prepared_graph.h"
#include "ir/array_type.h"
#include "ir/rebuild.h"
#include "ir/reference.h"
#include "ir/sources.h"
#include "passes/exact_activations.h"
#include "passes/precision.h"
#include "quant/block_format.h"
#include "quant/block_parts.h"

namespace rlx::coreml {

Version version_of(Target target) {
  switch (target) {
    case Target::ios16: return {"CoreML6", 7};
    case Target::ios17: return {"CoreML7", 8};
    case Target::ios18: return {"CoreML8", 9};
    case Target::ios26: return {"CoreML9", 10};
  }
  fail_internal("coreml: target {}", static_cast<int>(target));
}

namespace {

/// Values of a graph: tensors of the program, or what is the same in every run and may become one.
struct Held {
  std::optional<Tensor> tensor = {};
  std::optional<Weight> weight = {};
};
using HeldValues = std::map<ValueId, Held>;

class Emitter {
 public:
  /// `keeps_blocks`: weights in blocks are decoded by the device.
  explicit Emitter(bool keeps_blocks) : keeps_blocks_(keeps_blocks) {}

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
    return {{}, *element_of(type.dtype), type.shape};
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
    if (widens(graph, node) && (first.array.dtype() == i8 || first.array.size() > most_elements)) return keep(values, id, 0, first);
    return evaluate(graph, id, operands, values);
  }
  bool evaluate(const Graph& graph, std::int32_t id, const std::vector<Array>& operands, HeldValues& values) const {
    const Node& node = graph.node(id);
    if (std::ranges::any_of(node.attrs, is_open)) return false;
    for (const Type& type : node.results) {
      const bool runs_there = has_row(graph, node) && element_of(type.dtype);
      if (!type.is_static() || type.size().value() > (runs_there ? most_elements : most_foreign_elements)) return false;
    }
    for (std::size_t i = 0; i < operands.size(); ++i)
      if (operands[i].dtype() != graph.type(node.operands[i]).dtype) return false;
    const std::vector<Array> results = evaluate_node(graph, id, {}, operands, {});
    const bool is_weight = node.op->name == "decode_blocks";
    const std::string name = is_weight ? values.at(node.operands[0]).weight->name : std::string(node.op->name);
    for (std::size_t r = 0; r < results.size(); ++r) keep(values, id, r, {results[r], {}, name});
    return true;
  }
  static bool is_open(const Attr& attr) {
    const auto* const dims = std::get_if<Dims>(&attr);
    return dims && !std::ranges::all_of(*dims, &Dim::is_static);
  }
  static bool keep(HeldValues& values, std::int32_t id, std::size_t result, Weight weight) {
    values[{id, static_cast<std::int32_t>(result)}] = {{}, std::move(weight)};
    return true;
  }
  /// A cast after which the numbers are the same.
  static bool widens(const Graph& graph, const Node& node) {
    if (node.op->name != "cast") return false;
    const DType from = graph.type(node.operands[0]).dtype, to = node.results[0].dtype;
    return (to == f32 && (from == bf16 || from == f16)) || (from == i8 && element_of(to) && (is_float(to) || is_signed_int(to)));
  }
  /// Weights for which rows ask.
  static bool is_weight(const Array& array) { return is_float(array.dtype()) || array.dtype() == i8; }

  Tensors results(Body& body, const Graph& graph, std::int32_t id, HeldValues& values) const {
    const Node& node = graph.node(id);
    const Row<Rule>* const row = table().taking(graph, node);
    if (!row) {
      const Row<Rule>* const known = table().find(node.op->name);
      fail("coreml: {} with a result of {} cannot be exported: {}", node.op->name, node.results[0].to_string(),
           known ? known->reason : "it has no form there");
    }
    const auto is_u32 = [&](const Type& type) { return type.dtype == u32; };
    if (!takes_u32(node) &&
        (std::ranges::any_of(node.results, is_u32) || std::ranges::any_of(node.operands, [&](ValueId v) { return is_u32(graph.type(v)); })))
      fail("coreml: {} with a result of {} cannot be exported: CoreML has no u32, which i32 cannot stand for there", node.op->name,
           node.results[0].to_string());
    Tensors operands;
    const Floats floats = floats_of(graph, node, body.parts());
    for (std::size_t i = 0; i < node.operands.size(); ++i)
      operands.push_back(as_computed(body, node, operand(body, graph, node, i, values), floats.element));
    const FindWeight weight = [&](std::size_t i) {
      const std::optional<Weight>& held = values.at(node.operands[i]).weight;
      return held && (is_weight(held->array) || !held->blocks.empty()) ? &*held : nullptr;
    };
    if (body.parts().multiplies_f16 && !floats.reason.empty()) ++body.parts().kept_f32[floats.reason][std::string(node.op->name)];
    try {
      Tensors made = row->rule({{graph, node, none_}, body, operands, region_, weight});
      for (std::size_t r = 0; r < made.size(); ++r) made[r] = convert(body, made[r], *element_of(node.results[r].dtype));
      return made;
    } catch (const InternalError&) {
      throw;
    } catch (const Error& error) {
      const std::string_view why = error.what();
      if (why.starts_with("coreml: ")) throw;
      fail("coreml: {} with a result of {} cannot be exported: {} (give its symbols sizes)", node.op->name, node.results[0].to_string(),
           why);
    }
  }

  static Tensor as_computed(Body& body, const Node& node, const Tensor& x, std::optional<Element> floats) {
    if (x.name.empty()) return x;  // the row asks for the weight
    if (x.element == Element::boolean && node.op->kind != OpKind::scalar && !has_regions(node)) return convert(body, x, Element::i32);
    return floats && (x.element == Element::f16 || x.element == Element::f32) ? convert(body, x, *floats) : x;
  }

  Tensor operand(Body& body, const Graph& graph, const Node& node, std::size_t i, HeldValues& values) const {
    const ValueId v = node.operands[i];
    const std::optional<Weight>& weight = values.at(v).weight;
    const bool is_right = i == 1 && (node.op->name == "dot" || node.op->name == "conv");
    const bool is_table = i == 0 && node.op->name == "gather";
    if (weight && ((node.op->name == "rope" && i == 2) || i >= recurrent_weights(node))) return {};
    if (weight && (weight->blocks.empty() ? is_right && is_weight(weight->array) : is_table || is_right))
      return input(std::string(node.op->name), graph.type(v));
    return node.op->kind == OpKind::scalar ? tensor(body, graph, v, values) : whole(body, graph, v, values);
  }

  Tensor tensor(Body& body, const Graph& graph, ValueId v, HeldValues& values) const {
    Held& held = values.at(v);
    if (held.tensor) return *held.tensor;
    const Weight& weight = *held.weight;
    check(graph.type(v), "a result of", std::string(graph.node(v.node).op->name));
    if (!weight.blocks.empty()) held.tensor = decoded(body, weight, Element::f32);
    else if (is_float(graph.type(v).dtype)) held.tensor = body.constant(weight.array, *element_of(graph.type(v).dtype), weight.name);
    else held.tensor = body.constant(weight.array, weight.name);
    return *held.tensor;
  }
  /// A value with all its elements: operations of elements take axes of size 1 for any size, and so results of broadcasts have them.
  Tensor whole(Body& body, const Graph& graph, ValueId v, HeldValues& values) const {
    return stretched(body, tensor(body, graph, v, values), graph.type(v).shape);
  }

  /// What CoreML's tensors can be.
  void check(const Type& type, std::string_view what, const std::string& name) const {
    if (!element_of(type.dtype))
      fail("coreml: {} '{}' is {}: CoreML computes no {} (allowed: f32, f16, bf16, bool, and integers of up to 32 bits)", what, name,
           type.to_string(), rlx::name(type.dtype));
    if (type.shape.size() > most_axes) fail("coreml: {} '{}' is {}: CoreML has at most {} axes", what, name, type.to_string(), most_axes);
    for (const Dim& size : type.shape)
      if (size == 0) fail("coreml: {} '{}' is {}, which has no elements: CoreML has no such arrays", what, name, type.to_string());
  }

  static constexpr std::int64_t most_elements = 4096;                           // of what is computed here
  static constexpr std::int64_t most_foreign_elements = std::int64_t{1} << 28;  // the same of what the device cannot compute
  const Bindings none_;                                                         // no symbol has a size that the graph does not have
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

/// What open symbols may be together.
std::vector<Bindings> choices_of(const CoreMlOptions& options) {
  std::vector<Bindings> choices;
  for (const auto& [symbol, sizes] : options.choices) {
    choices.resize(sizes.size());
    for (std::size_t i = 0; i < sizes.size(); ++i) choices[i].emplace(symbol, sizes[i]);
  }
  return choices;
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
  /// `choices`: what open symbols may be together; none: all within their bounds.
  FunctionMaker(ProgramParts& parts, const Graph& graph, const NamedArrays& weights, const std::vector<Bindings>& choices)
      : parts_(parts),
        weights_(weights),
        choices_(choices),
        emitter_(!parts.target_is_given || parts.target >= Target::ios18),
        body_(parts) {
    parts.begin_function();
    for (const auto& [input, value] : graph.inputs()) add_input(input, value.id());
    if (!choices.empty() && std::ranges::count_if(read_, &Feature::is_open) > 1) parts.needs(Target::ios18, "choices for several inputs");
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
    for (const Feature& feature : read_) result.message(input, feature.message(choices_));
    for (const Feature& feature : written_) result.message(output, feature.output_message());
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
    find_symbols(feature.tensor());
    values_[value] = {from_feature(body_, feature.tensor(), wanted), {}};
    read_.push_back(std::move(feature));
  }

  /// The sizes of axes that are symbols are their sizes.
  void find_symbols(const Tensor& input) {
    std::optional<Tensor> shape;
    for (std::size_t d = 0; d < input.shape.size(); ++d) {
      const std::vector<Dim::Term> terms = input.shape[d].terms();
      if (terms.size() != 1 || terms[0].coefficient != 1 || terms[0].symbols.size() != 1) continue;
      const std::string& symbol = terms[0].symbols[0]->name;
      if (parts_.symbols.contains(symbol)) continue;
      if (!shape) shape = body_.add("shape", {{"x", input}}, Element::i32, {input.rank()});
      parts_.symbols.emplace(symbol, cut(body_, *shape, 0, d, d + 1));
    }
  }

  void add_state(const Input& input, ValueId value, const Tensor& wanted, Feature feature) {
    if (!is_float(input.type.dtype))
      fail("coreml: state '{}' is {} (allowed: floats, which are f16 there)", input.name, input.type.to_string());
    if (!input.type.is_static())
      fail("coreml: state '{}' is {}: states have fixed shapes (give its symbols sizes)", input.name, input.type.to_string());
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
    if (array.dtype() != input.type.dtype || dims_of(array.shape()) != input.type.shape)
      fail("coreml: parameter '{}' is {}, its value {}", input.name, input.type.to_string(), type_of(array).to_string());
    return {array, {}, input.name};
  }

  void add_output(const std::pair<std::string, Value>& output, const std::string& name, const Tensor& result) {
    if (const auto state = states_.find(output.first); state != states_.end()) {
      const Feature& feature = state->second;
      const Tensor value = reshape(body_, convert(body_, result, feature.element), feature.shape);
      body_.add_all("write_state", {{"input", feature.tensor()}, {"data", value}}, {});
      return;
    }
    const Feature feature(name, result, output.second.type());
    outputs_.push_back(body_.named(reshape(body_, convert(body_, result, feature.element), feature.shape), feature.name));
    written_.push_back(feature);
  }

  ProgramParts& parts_;
  const NamedArrays& weights_;
  const std::vector<Bindings>& choices_;
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
  made.parts.nests_scales = options.nested_scales;
  for (const auto& [from, to] : options.block_types)
    made.parts.block_types.emplace(from.empty() ? "" : std::string(find_block_format(from)->name), find_block_format(to)->name);
  const std::vector<Bindings> choices = choices_of(options);
  Graph graph = with_exact_activations(saved.graph);
  if (options.precision == Precision::int8)
    graph = with_precision(graph, Precision::int8, options.calibration ? &*options.calibration : nullptr, has_row).graph;
  std::vector<CoreMlFunction> wanted = options.functions;
  const bool is_one = wanted.empty();
  if (is_one) wanted.push_back({"main", {}});
  else made.parts.needs(Target::ios18, "several functions");
  std::vector<std::pair<std::string, std::unique_ptr<FunctionMaker>>> functions;
  for (CoreMlFunction& function : wanted) {
    function.sizes.insert(options.sizes.begin(), options.sizes.end());
    functions.emplace_back(function.name, std::make_unique<FunctionMaker>(
                                              made.parts, prepared(graph, function.sizes, saved.weights, options), saved.weights, choices));
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
  made.model.integer(1, static_cast<std::uint64_t>(version.specification)).message(2, features).message(502, program);
  return made;
}

}  // namespace rlx::coreml
