#include "ir/sources.h"

#include <algorithm>

#include "ir/array_type.h"
#include "ir/graph_data.h"
#include "ir/op.h"

namespace rlx {

constexpr auto enum_words(InputKind) { return std::array<std::string_view, 3>{"input", "param", "state"}; }

namespace {

/// A graph input, parameter or state, by name.
struct InputOp {
  static constexpr OpKind kind = OpKind::source;
  static constexpr std::string_view name = "input";
  static constexpr std::string_view formula = "the value bound to the name at run time";
  static constexpr std::string_view not_differentiable = "it is what one differentiates by";
  std::string label;
  InputKind role = InputKind::input;
  DType dtype = f32;
  Sizes shape;
  static auto fields() { return Fields<&InputOp::label, &InputOp::role, &InputOp::dtype, &InputOp::shape>{}; }
  static Type infer(const InputOp& op, std::span<const Type>) { return {op.dtype, op.shape.values}; }
  static std::vector<Sample> samples() { return {}; }
};

/// A tensor known when the graph is built.
struct Constant {
  static constexpr OpKind kind = OpKind::source;
  static constexpr std::string_view name = "constant";
  static constexpr std::string_view formula = "the given array";
  static constexpr std::string_view not_differentiable = "it does not change";
  Array value;
  static auto fields() { return Fields<&Constant::value>{}; }
  static Type infer(const Constant& op, std::span<const Type>) {
    if (op.value.rank() == 0 && op.value.size() == 0) fail("rlx.constant: has no value");
    return type_of(op.value);
  }
  static std::vector<Sample> samples() { return {}; }
};

const Op<InputOp> input_op;
const Op<Constant> constant_op;

}  // namespace

Value make_input(GraphData& graph, Input input) {
  Value value = apply(graph, Op<InputOp>::def(), input_attrs(input))[0];
  graph.inputs.emplace_back(std::move(input), value);
  return value;
}

Value make_constant(GraphData& graph, Array value) {
  if (!value.owner() && !value.bytes().empty()) {  // nobody but the caller knows how long the bytes live
    Array copy(value.dtype(), value.shape());
    std::copy(value.bytes().begin(), value.bytes().end(), copy.mutable_bytes().begin());
    value = std::move(copy);
  }
  return apply(graph, Op<Constant>::def(), attrs_of(Constant{std::move(value)}))[0];
}

Attrs input_attrs(const Input& input) { return attrs_of(InputOp{input.name, input.kind, input.type.dtype, input.type.shape}); }

Input input_from(const Attrs& attrs) {
  const InputOp op = Op<InputOp>::from(attrs);
  return {op.label, op.role, {op.dtype, op.shape.values}};
}

bool is_input(const Node& node) { return node.op == &Op<InputOp>::def(); }

const Array* constant_value(const Node& node) { return node.op == &Op<Constant>::def() ? &std::get<Array>(node.attrs[0]) : nullptr; }

}  // namespace rlx
