#include "backends/coreml/real_parts.h"

#include <algorithm>
#include <array>
#include <map>

#include "ir/op.h"
#include "ir/rebuild.h"
#include "ir/sources.h"
#include "ops/wide.h"
#include "passes/complex_rules.h"

namespace rlx::coreml {
namespace {

DType type_of_part(DType type) { return type == c64 ? f32 : f64; }

bool is_complex_value(const Graph& graph, ValueId v) { return is_complex(graph.type(v).dtype); }

bool has_complex(const Graph& graph, const Node& node) {
  return std::ranges::any_of(node.results, [](const Type& type) { return is_complex(type.dtype); }) ||
         std::ranges::any_of(node.operands, [&](ValueId v) { return is_complex_value(graph, v); });
}

bool has_complex(const Graph& graph) {
  for (std::size_t id = 0; id < graph.size(); ++id)
    if (has_complex(graph, graph.node(static_cast<std::int32_t>(id)))) return true;
  return false;
}

/// Ops that do the same to both parts. Fill values are real.
bool acts_on_parts(const Node& node) {
  constexpr std::array<std::string_view, 13> linear{"fold",  "gather", "scatter",    "dynamic_slice", "dynamic_update",
                                                    "place", "reduce", "cumulative", "select",        "add",
                                                    "sub",   "neg",    "iota"};
  const auto word = [&](std::string_view wanted) {
    return std::ranges::any_of(node.attrs, [&](const Attr& attr) {
      const auto* const text = std::get_if<std::string>(&attr);
      return text && *text == wanted;
    });
  };
  if (node.op->sources) return true;
  if (std::ranges::find(linear, node.op->name) == linear.end()) return false;
  if (node.op->name == "reduce" || node.op->name == "cumulative") return word("sum");
  return node.op->name != "scatter" || word("set") || word("add");
}

Attrs without_fill(const Node& node) {
  Attrs attrs = node.attrs;
  for (std::size_t i = 0; i < attrs.size(); ++i)
    if (node.op->fields[i].name.starts_with("fill")) attrs[i] = 0.0;
  return attrs;
}

Array part_of(const Array& array, bool imaginary) {
  Array part(type_of_part(array.dtype()), array.shape());
  for (std::int64_t i = 0; i < array.size(); ++i) {
    const std::complex<double> z = array.get_complex(i);
    part.set_double(i, imaginary ? z.imag() : z.real());
  }
  return part;
}

class RealParts {
 public:
  explicit RealParts(const Graph& graph) : graph_(graph), result_(graph.name()) {
    for (const auto& [input, value] : graph.inputs()) {
      if (!is_complex(input.type.dtype)) {
        real_[value.id()] = make_input(result_.data(), input);
        continue;
      }
      const auto part = [&](std::string_view end) {
        return make_input(result_.data(),
                          {fmt::format("{}_{}", input.name, end), input.kind, {type_of_part(input.type.dtype), input.type.shape}});
      };
      complex_[value.id()] = {part("real"), part("imag")};
    }
  }

  Graph run() {
    for (const std::int32_t id : needed_nodes(graph_.data(), output_ids(graph_))) {
      const Node& node = graph_.node(id);
      if (has_complex(graph_, node)) parts(id, node);
      else set(id, emit(result_.data(), *node.op, node.attrs, real_operands(node)));
    }
    for (const auto& [name, value] : graph_.outputs()) {
      if (!is_complex_value(graph_, value.id())) {
        result_.output(name, real_.at(value.id()));
        continue;
      }
      const ComplexValue& z = complex_.at(value.id());
      result_.output(name + "_real", z.re);
      result_.output(name + "_imag", z.im);
    }
    return result_;
  }

 private:
  void set(std::int32_t id, const Values& results) {
    for (std::size_t r = 0; r < results.size(); ++r) real_[{id, static_cast<std::int32_t>(r)}] = results[r];
  }
  Values real_operands(const Node& node) const {
    Values operands;
    for (const ValueId v : node.operands) operands.push_back(real_.at(v));
    return operands;
  }
  const ComplexValue& z(const Node& node, std::size_t operand) const { return complex_.at(node.operands[operand]); }

  /// The op on one part of its complex operands.
  Value on_part(const Node& node, bool imaginary) {
    Values operands;
    for (const ValueId v : node.operands) {
      const auto pair = complex_.find(v);
      operands.push_back(pair == complex_.end() ? real_.at(v) : imaginary ? pair->second.im : pair->second.re);
    }
    return emit(result_.data(), *node.op, imaginary ? without_fill(node) : node.attrs, operands)[0];
  }

  void parts(std::int32_t id, const Node& node) {
    const std::string_view op = node.op->name;
    const ValueId v{id, 0};
    if (const Array* array = constant_value(node)) {
      complex_[v] = {result_.constant(part_of(*array, false)), result_.constant(part_of(*array, true))};
    } else if (op == "complex") {
      complex_[v] = {real_.at(node.operands[0]), real_.at(node.operands[1])};
    } else if (op == "real" || op == "imag") {
      real_[v] = op == "real" ? z(node, 0).re : z(node, 0).im;
    } else if (op == "conj") {
      complex_[v] = {z(node, 0).re, -z(node, 0).im};
    } else if (op == "dot" || op == "conv") {
      complex_[v] = product(node);
    } else if (op == "cast") {
      cast_parts(v, node);
    } else if (op == "eq" || op == "ne") {
      Value equal = complex_equal(z(node, 0), z(node, 1));
      real_[v] = op == "eq" ? equal : logical_not(equal);
    } else if (acts_on_parts(node)) {
      complex_[v] = {on_part(node, false), on_part(node, true)};
    } else {
      const ComplexValue y = scalar(node);
      if (is_complex(node.results[0].dtype)) complex_[v] = y;
      else real_[v] = y.re;
    }
  }

  ComplexValue product(const Node& node) {
    const ComplexValue &x = z(node, 0), &y = z(node, 1);
    const auto times = [&](Value a, Value b) { return emit(result_.data(), *node.op, node.attrs, std::array{a, b})[0]; };
    return {times(x.re, y.re) - times(x.im, y.im), times(x.re, y.im) + times(x.im, y.re)};
  }

  void cast_parts(ValueId v, const Node& node) {
    const DType to = node.results[0].dtype;
    const auto from = complex_.find(node.operands[0]);
    const bool was_complex = from != complex_.end();
    if (!is_complex(to)) {
      real_[v] = cast(from->second.re, to);
      return;
    }
    Value re = cast(was_complex ? from->second.re : real_.at(node.operands[0]), type_of_part(to));
    complex_[v] = {re, was_complex ? cast(from->second.im, type_of_part(to)) : broadcast_to(like(re, 0), re.shape())};
  }

  ComplexValue scalar(const Node& node) {
    if (node.op->scalar >= 0) {
      const ComplexValue none;
      const auto made = complex_rule(static_cast<ScalarOp>(node.op->scalar), z(node, 0), node.operands.size() > 1 ? z(node, 1) : none);
      if (made) return *made;
    }
    fail("{} of {}: complex numbers have no form for it in real parts", node.op->name, graph_.type(node.operands[0]).to_string());
  }

  const Graph& graph_;
  Graph result_;
  std::map<ValueId, Value> real_;
  std::map<ValueId, ComplexValue> complex_;
};

}  // namespace

NamedArrays in_real_parts(const NamedArrays& arrays) {
  NamedArrays result;
  for (const auto& [name, array] : arrays) {
    if (!is_complex(array.dtype())) {
      result.emplace(name, array);
      continue;
    }
    result.emplace(name + "_real", part_of(array, false));
    result.emplace(name + "_imag", part_of(array, true));
  }
  return result;
}

Graph in_real_parts(const Graph& graph) { return has_complex(graph) ? RealParts(graph).run() : graph; }

}  // namespace rlx::coreml
