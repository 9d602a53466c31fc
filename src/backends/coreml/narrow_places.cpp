// Places on an axis are counted and compared in i64 by graphs: i32 holds most of them, which CoreML has.
#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>

#include "backends/consumer.h"
#include "backends/coreml/prepared_graph.h"
#include "ir/op.h"
#include "ir/rebuild.h"
#include "ir/sources.h"
#include "rlx/ops.h"

namespace rlx::coreml {
namespace {

/// Between which the numbers of a value lie, whatever a run reads. Those of f64 hold any of i64 but for rounding, and do not wrap.
struct Range {
  double least, most;
  bool is_within(const Range& all) const { return least >= all.least && most <= all.most; }
};

constexpr Range anything{-0x1p63, 0x1p63};

Range range_of(DType type) {
  if (is_bool(type)) return {0, 1};
  if (!is_integer(type)) return anything;
  const double most = std::ldexp(1.0, info(type).bits - is_signed_int(type)) - 1;
  return {is_signed_int(type) ? -most - 1 : 0, most};
}
Range hull(const Range& a, const Range& b) { return {std::min(a.least, b.least), std::max(a.most, b.most)}; }
/// Of all results of an operation that is the furthest at the ends of its operands.
template <class Operation>
Range at_ends(const Range& a, const Range& b, const Operation& operation) {
  const std::initializer_list<double> results{operation(a.least, b.least), operation(a.least, b.most), operation(a.most, b.least),
                                              operation(a.most, b.most)};
  return {std::min(results), std::max(results)};
}
/// Of sums of up to so many.
Range sum_of(const Range& each, double count) { return hull({0, 0}, {each.least * count, each.most * count}); }

/// With what elements of nowhere are, where an op makes such.
Range with_fill(Range range, const Node& node) {
  for (std::size_t i = 0; i < node.op->fields.size(); ++i)
    if (const auto* const fill = std::get_if<double>(&node.attrs[i])) range = hull(range, {*fill, *fill});
  return range;
}

Range range_of_constant(const Array& constant) {
  std::optional<Range> all;
  for (std::int64_t i = 0; i < constant.size(); ++i) {
    const auto number = static_cast<double>(constant.get_int(i));
    all = all ? hull(*all, {number, number}) : Range{number, number};
  }
  return all.value_or(Range{0, 0});
}

double elements(const Type& type) { return std::max(1.0, static_cast<double>(type.size().upper())); }

/// Of an integer that an op computes. Nothing: the op has no rule here.
std::optional<Range> range_of(const Graph& graph, const Node& node, const std::vector<Range>& x) {
  const std::string_view op = node.op->name;
  const NodeView view{graph, node, {}};
  if (const Array* constant = constant_value(node)) return range_of_constant(*constant);
  if (op == "iota") return Range{0, static_cast<double>(node.results[0].dim(view.number("axis")).upper())};
  if (op == "cast") return x[0];
  if (op == "add") return Range{x[0].least + x[1].least, x[0].most + x[1].most};
  if (op == "sub") return Range{x[0].least - x[1].most, x[0].most - x[1].least};
  if (op == "neg") return Range{-x[0].most, -x[0].least};
  if (op == "mul") return at_ends(x[0], x[1], std::multiplies<>());
  if (op == "div" && x[1].least >= 1) return hull({0, 0}, x[0]);
  if (op == "rem" && x[1].least >= 1) return hull({0, 0}, {std::max(x[0].least, 1 - x[1].most), std::min(x[0].most, x[1].most - 1)});
  if (op == "max") return Range{std::max(x[0].least, x[1].least), std::max(x[0].most, x[1].most)};
  if (op == "min") return Range{std::min(x[0].least, x[1].least), std::min(x[0].most, x[1].most)};
  if (op == "select") return hull(x[1], x[2]);
  if (op == "reduce" || op == "cumulative") {
    const std::string_view kind = view.word("op");
    const Type& from = graph.type(node.operands[0]);
    const double count = op == "reduce" ? elements(from) / elements(node.results[0]) : static_cast<double>(from.dim(view.axis()).upper());
    if (kind == "sum") return sum_of(x[0], count);
    return kind == "max" || kind == "min" ? std::optional(x[0]) : std::nullopt;
  }
  if (op == "gather") return with_fill(x[0], node);
  if (!node.op->sources || x.empty()) return std::nullopt;
  Range all = x[0];
  for (const Range& each : x) all = hull(all, each);
  return with_fill(all, node);
}

/// An op whose results i32 holds on operands that it holds; nothing: one of them is wide.
std::optional<Value> in_i32(const Rebuilder& out, const Node& node, const Values& operands) {
  if (const Array* constant = constant_value(node)) {
    Array narrow(i32, constant->shape());
    for (std::int64_t i = 0; i < narrow.size(); ++i) narrow.set_int(i, constant->get_int(i));
    return make_constant(out.data(), narrow);
  }
  if (std::ranges::any_of(operands, [](const Value& x) { return x.dtype() == i64 || x.dtype() == u32 || x.dtype() == u64; })) return {};
  if (node.op->name == "cast") return cast(operands[0], i32);
  Attrs attrs = node.attrs;
  if (node.op->name == "iota") attrs[1] = i32;
  return emit(out.data(), *node.op, attrs, operands)[0];
}

class NarrowPlaces {
 public:
  explicit NarrowPlaces(const Graph& graph) : graph_(graph), out_(graph) {}

  Graph run() {
    for (const std::int32_t id : out_.needed())
      if (const Values results = narrowed(id, graph_.node(id)); !results.empty()) out_.replace(id, results);
      else out_.copy(id);
    return out_.finish();
  }

 private:
  Values narrowed(std::int32_t id, const Node& node) {
    static constexpr std::array<std::string_view, 11> readers{
        "eq", "ne", "lt", "le", "gt", "ge", "gather", "scatter", "dynamic_slice", "dynamic_update", "place"};
    Values operands;
    std::vector<Range> ranges;
    bool has_narrow = false, has_wide = false;
    for (const ValueId v : node.operands) {
      const auto found = narrow_.find(v);
      operands.push_back(found != narrow_.end() ? found->second : out_.value(v));
      has_narrow = has_narrow || found != narrow_.end();
      has_wide = has_wide || operands.back().dtype() == i64;
      const auto known = ranges_.find(v);
      ranges.push_back(known != ranges_.end() ? known->second : range_of(graph_.type(v).dtype));
    }
    const DType type = node.results[0].dtype;
    const std::optional<Range> range = is_integer(type) && node.results.size() == 1 ? range_of(graph_, node, ranges) : std::nullopt;
    if (range && range->is_within(range_of(type))) ranges_[{id, 0}] = *range;
    if (type == i64 && range && range->is_within(range_of(i32)))
      if (const auto made = in_i32(out_, node, operands)) return {cast(narrow_[{id, 0}] = *made, i64)};
    if (!has_narrow) return {};
    if (node.op->name == "cast") return {cast(operands[0], type)};
    const bool reads = !has_wide && std::ranges::find(readers, node.op->name) != readers.end();
    return reads ? emit(out_.data(), *node.op, node.attrs, operands) : Values{};
  }

  const Graph& graph_;
  Rebuilder out_;
  std::map<ValueId, Range> ranges_;
  std::map<ValueId, Value> narrow_;  // i64 as i32
};

}  // namespace

Graph with_narrow_places(const Graph& graph) { return NarrowPlaces(graph).run(); }

}  // namespace rlx::coreml
