#include "models/layers/rope_table.h"

#include "ir/reference.h"
#include "ir/sources.h"
#include "rlx/ops.h"

namespace rlx {
namespace {

/// The pairs of the last axis, of two elements on the axis that this gives.
std::int64_t pair_axis(RopeStyle style) { return style == RopeStyle::half ? -2 : -1; }
Value in_pairs(Value x, RopeStyle style) {
  Dims shape = x.shape();
  const std::int64_t pairs = shape.back().value() / 2;
  shape.back() = style == RopeStyle::half ? 2 : pairs;
  shape.emplace_back(style == RopeStyle::half ? pairs : 2);
  return reshape(x, shape);
}

/// Cosines and sines in the place of a pair's elements, (most, dims): what rope makes of pairs (1, 0).
Array table_of(std::int64_t most, std::int64_t dims, const RopeOptions& options) {
  Array units(f32, {1, dims}), positions(i32, {most});
  for (std::int64_t pair = 0; pair < dims / 2; ++pair) units.set_double(options.style == RopeStyle::half ? pair : 2 * pair, 1);
  for (std::int64_t at = 0; at < most; ++at) positions.set_int(at, at);
  Graph graph;
  const Value unit = make_constant(graph.data(), units), every = make_constant(graph.data(), positions);
  graph.output("table", rope(broadcast_to(unit, {most, dims}), every, options));
  return evaluate(graph, {}).at(0);
}

}  // namespace

Value rope_by_table(Value x, Value positions, std::int64_t most, const RopeOptions& options) {
  const std::int64_t size = x.dim(-1).value(), dims = options.dims ? options.dims : size, axis = pair_axis(options.style);
  const Value table = make_constant(x.graph(), table_of(most, dims, options)), rows = take(table, positions);
  const Value angles = in_pairs(reshape(rows, {x.dim(0), 1, x.dim(2), dims}), options.style);
  const Value wide = cast(x, f32), pairs = in_pairs(slice_axis(wide, -1, 0, dims), options.style);
  const auto half = [&](Value of, std::int64_t i) { return slice_axis(of, axis, i, i + 1); };
  const Value a = half(pairs, 0), b = half(pairs, 1), c = half(angles, 0), s = half(angles, 1);
  Value result = reshape(concat({a * c - b * s, b * c + a * s}, axis), {x.dim(0), x.dim(1), x.dim(2), dims});
  if (dims < size) result = concat({result, slice_axis(wide, -1, dims, size)}, -1);
  return cast(result, x.dtype());
}

}  // namespace rlx
