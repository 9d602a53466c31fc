#include "documents/op_description.h"

#include <algorithm>
#include <set>

#include <fmt/ranges.h>

namespace rlx::command {
namespace {

struct SampleTypes {
  std::vector<Type> operands, results;
};

SampleTypes types_of(const OpDef& op, const Sample& sample) {
  Attrs attrs = sample.attrs;
  if (attrs.empty())
    for (const Field& field : op.fields) attrs.push_back(field.initial);
  Graph graph;
  SampleTypes types;
  Values operands;
  for (const Sample::Operand& operand : sample.operands) {
    types.operands.push_back(operand.type);
    operands.push_back(graph.input(fmt::format("x{}", operands.size()), operand.type.shape, operand.type.dtype));
  }
  const Values results = operands.empty() ? apply(graph.data(), op, attrs) : apply(op, attrs, operands);
  for (Value result : results) types.results.push_back(result.type());
  return types;
}

std::string text_of(const std::vector<Type>& types) {
  std::vector<std::string> words;
  for (const Type& type : types) words.push_back(type.to_string());
  return fmt::format("{}", fmt::join(words, ", "));
}

bool has_derivative(DType dtype) { return is_float(dtype) || is_complex(dtype); }

}  // namespace

std::string_view kind_word(OpKind kind) {
  switch (kind) {
    case OpKind::source: return "source";
    case OpKind::scalar: return "scalar";
    case OpKind::structure: return "structure";
    case OpKind::primitive: return "primitive";
    case OpKind::composite: return "composite";
  }
  return "";
}

std::string differentiability(const OpDef& op) {
  if (!op.not_differentiable.empty()) return fmt::format("no: {}", op.not_differentiable);
  const auto samples = op.samples();
  if (!samples.empty()) {
    const std::vector<Type> results = types_of(op, samples.front()).results;
    if (std::none_of(results.begin(), results.end(), [](const Type& type) { return has_derivative(type.dtype); }))
      return fmt::format("no: its result is {}", name(results.front().dtype));
  }
  if (op.kind == OpKind::composite) return op.jvp || op.vjp ? "yes (by a rule of its own)" : "yes (by its body)";
  return op.transpose && !op.jvp ? "yes (linear)" : "yes";
}

std::string attribute_type(const Field& field) {
  if (!field.words.empty()) return fmt::format("one of {}", fmt::join(field.words, ", "));
  switch (field.role) {
    case Role::axis: return "axis";
    case Role::axes: return "axes";
    case Role::perm: return "one axis for each axis of x";
    case Role::sizes: return "shape";
    case Role::per_dim_zero:
    case Role::per_dim_one:
    case Role::per_dim_size: return "one size for each axis";
    case Role::plain: break;
  }
  static constexpr std::string_view words[] = {"bool", "integer", "number", "text", "element type", "integers", "sizes", "array", "region"};
  static_assert(std::size(words) == std::variant_size_v<Attr>);
  return std::string(words[field.kind]);
}

std::string attribute_default(const Field& field) {
  if (std::holds_alternative<Array>(field.initial) || std::holds_alternative<Region>(field.initial)) return "";
  return to_string(field.initial);
}

std::vector<std::string> type_examples(const OpDef& op, std::size_t most) {
  std::vector<std::string> lines;
  std::set<std::string> shapes;
  for (const Sample& sample : op.samples()) {
    if (lines.size() == most) break;
    const SampleTypes types = types_of(op, sample);
    std::string key;
    for (const Type& type : types.operands) key += to_string(type.shape) + ";";
    if (!shapes.insert(key).second) continue;
    const std::string results = text_of(types.results);
    lines.push_back(fmt::format("({}) -> {}", text_of(types.operands), types.results.size() == 1 ? results : "(" + results + ")"));
  }
  return lines;
}

std::vector<std::string_view> tested_dtypes(const OpDef& op) {
  std::vector<std::string_view> names;
  for (const Sample& sample : op.samples()) {
    const SampleTypes types = types_of(op, sample);
    const std::string_view dtype = name((types.operands.empty() ? types.results : types.operands).front().dtype);
    if (std::find(names.begin(), names.end(), dtype) == names.end()) names.push_back(dtype);
  }
  return names;
}

}  // namespace rlx::command
