// Composites that CoreML computes whole: its own forms are faster on its devices, and some bodies look at the bits of numbers.
#include <algorithm>

#include "backends/coreml/operations.h"

namespace rlx::coreml {
namespace {

Tensors gelu(const Call& c) {
  const char* const mode = c.node.op->name == "gelu" ? "EXACT" : "TANH_APPROXIMATION";
  return {c.out.add("gelu", {{"x", c.x[0]}, {"mode", Immediate(mode)}}, c.x[0].element, c.x[0].shape)};
}

/// Less accurate than ours where it is small.
Tensors erfc(const Call& c) { return {binary(c.out, "sub", number(c.x[0], 1), unary(c.out, "erf", c.x[0]))}; }

Tensors same_name(const Call& c) { return {unary(c.out, c.node.op->name, c.x[0])}; }

Tensors softmax(const Call& c) {
  const Tensor& x = c.x[0];
  return {c.out.add("softmax", {{"x", x}, {"axis", Immediate(static_cast<int>(c.axis()))}}, x.element, x.shape)};
}

/// Over the last axes; CoreML has a batch and channels before them.
Tensors pool(const Call& c) {
  const Sizes window = c.numbers("window");
  const auto spatial = static_cast<std::ptrdiff_t>(window.size());
  const Tensor& given = c.x[0];
  const Dims lead = given.rank() == spatial + 2 ? Dims(given.shape.begin(), given.shape.end() - spatial)
                                                : Dims{product({given.shape.begin(), given.shape.end() - spatial}), 1};
  const auto joined = [&](const Dims& from) {
    Dims shape = lead;
    shape.insert(shape.end(), from.end() - spatial, from.end());
    return shape;
  };
  Sizes pads;
  for (const std::int64_t padding : c.numbers("padding")) pads.insert(pads.end(), {padding, padding});
  const Tensor x = reshape(c.out, given, joined(given.shape));
  Arguments arguments{{"x", x},
                      {"kernel_sizes", Immediate(window)},
                      {"strides", Immediate(c.numbers("strides"))},
                      {"pad_type", Immediate("custom")},
                      {"pad", Immediate(pads)},
                      {"ceil_mode", Immediate(false)}};
  if (c.node.op->name == "avg_pool") arguments.emplace_back("exclude_padding_from_average", Immediate(!c.flag("count_include_pad")));
  const Tensor y = c.out.add(c.node.op->name, arguments, x.element, joined(c.shape()));
  return {reshape(c.out, y, c.shape())};
}

/// Others are windows that are reduced.
bool is_plain_pool(const Graph& graph, const Node& node) {
  const NodeView view{graph, node, {}};
  const bool is_dilated = node.op->name == "max_pool" && std::ranges::any_of(view.numbers("dilation"), [](auto d) { return d != 1; });
  const Type& x = graph.type(node.operands[0]);
  const std::size_t spatial = view.numbers("window").size();
  return is_float(x.dtype) && spatial <= 3 && spatial < x.shape.size() && !view.flag("ceil_mode") && !is_dilated;
}

bool is_float_of_one(const Graph& graph, const Node& node) {
  return is_float(graph.type(node.operands[0]).dtype) && node.operands.size() == 1;
}

bool is_plain_softmax(const Graph& graph, const Node& node) { return is_float_of_one(graph, node) && !std::get<bool>(node.attrs[1]); }

}  // namespace

Rows composite_rows() {
  static constexpr Row<Rule> rows[] = {
      {"gelu", gelu, is_float_of_one},        {"gelu_tanh", gelu, is_float_of_one},    {"erfc", erfc, is_float_of_one},
      {"relu", same_name, is_float_of_one},   {"sigmoid", same_name, is_float_of_one}, {"silu", same_name, is_float_of_one},
      {"softmax", softmax, is_plain_softmax}, {"max_pool", pool, is_plain_pool},       {"avg_pool", pool, is_plain_pool},
  };
  return rows;
}

}  // namespace rlx::coreml
