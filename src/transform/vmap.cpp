// vmap of a function: trace it for one example, run the trace on the batch.
#include "ir/rebuild.h"
#include "ir/region.h"
#include "rlx/ops.h"
#include "rlx/transform.h"
#include "transform/batching.h"

namespace rlx {
namespace {

Type example_type(const Type& type, std::int64_t axis) {
  Type example = type;
  example.shape.erase(example.shape.begin() + axis);
  return example;
}

/// Axis positions checked, and the common size of the batch.
Dim batch_size(const Values& operands, std::vector<std::optional<std::int64_t>>& in_axes) {
  if (in_axes.size() != operands.size()) fail("rlx.vmap: {} in_axes for {} operands", in_axes.size(), operands.size());
  std::optional<Dim> size;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (!in_axes[i]) continue;
    in_axes[i] = normalize_axis("vmap", *in_axes[i], operands[i].type());
    const Dim& given = operands[i].dim(*in_axes[i]);
    if (size && !(*size == given))
      fail("rlx.vmap: axis {} of operand {}, {}, is {}, other batches are {}", *in_axes[i], i, operands[i].type().to_string(),
           given.to_string(), size->to_string());
    size = given;
  }
  if (!size) fail("rlx.vmap: no operand has a batch axis");
  return *size;
}

}  // namespace

Values vmap(const Function& function, const Operands& operands, std::vector<std::optional<std::int64_t>> in_axes,
            std::vector<std::int64_t> out_axes) {
  const Dim size = batch_size(operands, in_axes);
  GraphData& target = innermost_graph("vmap", operands);
  std::vector<Type> types;
  std::vector<Batched> given;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    types.push_back(in_axes[i] ? example_type(operands[i].type(), *in_axes[i]) : operands[i].type());
    given.push_back({in_axes[i] ? move_axis(operands[i], *in_axes[i], 0) : operands[i], in_axes[i].has_value()});
  }
  const Graph example = trace_region("vmap", &target, types, function);
  for (Value captured : example.captures()) given.push_back({captured, false});
  const std::vector<Batched> results = batch_graph(target, example, given, size);
  if (out_axes.empty()) out_axes.assign(results.size(), 0);
  if (out_axes.size() != results.size()) fail("rlx.vmap: {} out_axes for {} results", out_axes.size(), results.size());
  Values values;
  for (std::size_t i = 0; i < results.size(); ++i) values.push_back(move_axis(with_batch(results[i], size), 0, out_axes[i]));
  return values;
}

}  // namespace rlx
