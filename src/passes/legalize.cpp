#include "passes/legalize.h"

#include <algorithm>
#include <map>
#include <optional>

#include "ir/op.h"
#include "ir/rebuild.h"
#include "ir/sources.h"
#include "ops/broadcasting.h"
#include "ops/scalar/reinterpret.h"
#include "passes/complex_rules.h"
#include "passes/narrow_types.h"
#include "passes/storage_form.h"
#include "rlx/ops.h"

namespace rlx {
namespace {

/// The parts of the one result of a node; nothing when no rule fits.
using Result = std::optional<Values>;

ComplexValue complex_of(const Values& parts) { return {parts[0], parts.size() > 1 ? parts[1] : zeros_like(parts[0])}; }

/// What a loop computes from its operands, as far as parts care.
enum class Linearity : std::uint8_t { linear, bilinear, other };

class Legalizer {
 public:
  Legalizer(const Graph& graph, const HasType& has_type, const IsClaimed& is_claimed)
      : graph_(graph), has_type_(has_type), is_claimed_(is_claimed), out_(graph) {}

  bool has_work() const {
    return std::any_of(out_.needed().begin(), out_.needed().end(),
                       [&](std::int32_t id) { return lacks_a_type(graph_.node(id)) || has_regions(graph_.node(id)); });
  }

  Graph run() {
    const auto legal_region = [this](const Graph& region) { return legalize(region, has_type_, is_claimed_); };
    for (std::int32_t id : out_.needed()) {
      const Node& node = graph_.node(id);
      if (auto parts = lacks_a_type(node) ? legal(node) : std::nullopt) keep(id, std::move(*parts));
      else if (computes_whole(node)) on_bytes(id);
      else out_.replace(id, emit(out_.data(), *node.op, map_regions(node.attrs, legal_region), out_.operands(id)));
    }
    return out_.finish();
  }

 private:
  bool lacks(DType t) const { return has_parts(t) && !has_type_(t); }
  bool lacks_a_type(const Node& node) const {
    return std::any_of(node.results.begin(), node.results.end(), [&](const Type& t) { return lacks(t.dtype); }) ||
           std::any_of(node.operands.begin(), node.operands.end(), [&](ValueId v) { return lacks(graph_.type(v).dtype); });
  }

  /// What stands for a value: itself where the target has its type.
  const Values& parts(ValueId id) {
    auto [it, is_new] = parts_.try_emplace(id);
    if (is_new) it->second = lacks(graph_.type(id).dtype) ? load_parts(out_.value(id)) : Values{out_.value(id)};
    return it->second;
  }
  void keep(std::int32_t id, Values parts) {
    const Type& type = graph_.node(id).results[0];
    out_.replace(id, {lacks(type.dtype) ? store_parts(parts, type) : parts[0]});
    parts_[{id, 0}] = std::move(parts);
  }

  Result legal(const Node& node) {
    if (node.results.size() != 1) return std::nullopt;
    if (const Array* value = constant_value(node)) return value->size() == 1 ? Result(constant_parts(out_.data(), *value)) : std::nullopt;
    if (node.op->kind == OpKind::scalar) return scalar_result(node);
    if (node.op->sources || node.op->address || node.op->destination) return moved(node);
    if (node.op->loop) return reduced(node);
    return std::nullopt;
  }

  // -- nodes that are computed whole, such as sorts, on bytes in place of 4-bit integers

  bool is_lacking_packed(ValueId v) const { return is_packed(graph_.type(v).dtype) && lacks(graph_.type(v).dtype); }
  bool computes_whole(const Node& node) const {
    return node.op->kind == OpKind::primitive && !has_regions(node) && !is_reinterpretation(node) &&
           std::any_of(node.operands.begin(), node.operands.end(), [&](ValueId v) { return is_lacking_packed(v); });
  }
  void on_bytes(std::int32_t id) {
    const Node& node = graph_.node(id);
    Values operands;
    for (ValueId v : node.operands) operands.push_back(is_lacking_packed(v) ? parts(v)[0] : out_.value(v));
    Values results = emit(out_.data(), *node.op, node.attrs, operands);
    const auto* kind = node.attrs.empty() ? nullptr : std::get_if<std::string>(&node.attrs[0]);
    const bool is_extreme = kind && (*kind == "max" || *kind == "min");
    for (std::size_t r = 0; r < results.size(); ++r) {
      const Type& type = node.results[r];
      if (!is_packed(type.dtype)) continue;
      const Value part = is_extreme ? saturated(results[r], type.dtype) : wrapped(results[r], type.dtype);
      parts_[{id, static_cast<std::int32_t>(r)}] = {part};
      results[r] = store_parts({part}, type);
    }
    out_.replace(id, results);
  }

  /// The node on part `part` of each operand.
  Value on_part(const Node& node, std::size_t part) {
    Values operands;
    for (ValueId v : node.operands) operands.push_back(parts(v)[std::min(part, parts(v).size() - 1)]);
    return on(node, operands, part > 0);
  }
  /// The node on other operands. Numbers among its attributes are fill values: real ones.
  Value on(const Node& node, const Values& operands, bool is_imaginary = false) {
    Attrs attrs = node.attrs;
    for (Attr& attr : attrs) {
      if (auto* dtype = std::get_if<DType>(&attr); dtype && lacks(*dtype)) *dtype = part_type(*dtype);
      if (auto* number = std::get_if<double>(&attr); number && is_imaginary) *number = 0;
    }
    return emit(out_.data(), *node.op, attrs, operands)[0];
  }

  /// Structure and addressing move elements: each part moves alike.
  Result moved(const Node& node) {
    const DType t = node.results[0].dtype;
    Values result{on_part(node, 0)};
    if (!lacks(t)) return result;
    if (is_complex(t)) {
      result.push_back(node.operands.empty() ? zeros_like(result[0]) : on_part(node, 1));
      return result;
    }
    const bool has_fill =
        std::any_of(node.attrs.begin(), node.attrs.end(), [](const Attr& a) { return std::holds_alternative<double>(a); });
    if (node.operands.empty()) result[0] = cast_to_part(result[0], t);
    else if (has_fill) result[0] = saturated(result[0], t);
    return result;
  }

  Loop loop_of(const Node& node) const {
    int variables = 0;
    const FreshVariable fresh = [&](const Dim& extent) { return Index::variable(variables++, extent); };
    std::vector<Index> at;
    for (const Dim& extent : node.results[0].shape) at.push_back(fresh(extent));
    std::vector<Type> types;
    for (ValueId v : node.operands) types.push_back(graph_.type(v));
    return node.op->loop(node.attrs, types, node.results[0], at, fresh);
  }
  static Linearity linearity(const Node& node, const Loop& loop) {
    if (loop.kind != ReduceKind::sum || loop.factors.size() != node.operands.size() || loop.factors.size() > 2) return Linearity::other;
    return loop.factors.size() == 1 ? Linearity::linear : Linearity::bilinear;
  }

  Result reduced(const Node& node) {
    const DType t = node.results[0].dtype;
    const Loop loop = loop_of(node);
    const bool is_extreme = loop.kind == ReduceKind::max || loop.kind == ReduceKind::min;
    if (!is_complex(t)) {
      const Value part = on_part(node, 0);
      return Values{!lacks(t) ? part : is_extreme ? bounded(part, t) : wrapped(part, t)};
    }
    switch (linearity(node, loop)) {
      case Linearity::linear: return Values{on_part(node, 0), on_part(node, 1)};
      case Linearity::bilinear: {
        const ComplexValue x = complex_of(parts(node.operands[0])), y = complex_of(parts(node.operands[1]));
        return Values{on(node, {x.re, y.re}) - on(node, {x.im, y.im}), on(node, {x.re, y.im}) + on(node, {x.im, y.re})};
      }
      case Linearity::other: break;
    }
    return std::nullopt;
  }

  // -- scalar ops

  Result scalar_result(const Node& node) {
    const DType t = node.results[0].dtype;
    const auto op = static_cast<ScalarOp>(node.op->scalar);
    if (op == ScalarOp::cast) return cast_result(node);
    if (op == ScalarOp::bitcast) return bitcast_result(node);
    if (op == ScalarOp::select) {
      Values result;
      for (std::size_t part = 0; part < (is_complex(t) ? 2 : 1); ++part) result.push_back(on_part(node, part));
      return result;
    }
    const bool complex_operands = is_complex(graph_.type(node.operands[0]).dtype);
    if (is_complex(t) || complex_operands) return complex_result(node, op);
    return Values{lacks(t) ? wrapped(on_part(node, 0), t) : on_part(node, 0)};
  }

  Result complex_result(const Node& node, ScalarOp op) {
    const Values x = parts(node.operands[0]), y = node.operands.size() > 1 ? parts(node.operands[1]) : x;
    if (op == ScalarOp::complex) return Values{x[0], y[0]};
    if (op == ScalarOp::real) return Values{x[0]};
    if (op == ScalarOp::imag) return Values{x[1]};
    if (op == ScalarOp::abs) return Values{hypot(x[0], x[1])};
    if (op == ScalarOp::eq) return Values{complex_equal(complex_of(x), complex_of(y))};
    if (op == ScalarOp::ne) return Values{logical_not(complex_equal(complex_of(x), complex_of(y)))};
    const auto z = complex_rule(op, complex_of(x), complex_of(y));
    return z ? Result(Values{z->re, z->im}) : std::nullopt;
  }

  /// As `cast` does: a complex number loses its imaginary part, but for bool.
  Result cast_result(const Node& node) {
    const DType from = graph_.type(node.operands[0]).dtype, to = node.results[0].dtype;
    const Values x = parts(node.operands[0]);
    if (is_complex(to)) {
      const ComplexValue z = complex_of(x);
      return Values{cast(z.re, part_type(to)), cast(z.im, part_type(to))};
    }
    if (is_complex(from) && is_bool(to)) return Values{logical_or(cast(x[0], to), cast(x[1], to))};
    return Values{lacks(to) ? cast_to_part(x[0], to) : cast(x[0], to)};
  }

  Result bitcast_result(const Node& node) {
    const DType from = graph_.type(node.operands[0]).dtype, to = node.results[0].dtype;
    if (is_complex(from) || is_complex(to)) {
      const Value whole = reinterpret(out_.value(node.operands[0]), to, node.results[0].shape);
      return lacks(to) ? load_parts(whole) : Values{whole};
    }
    const Value x = parts(node.operands[0])[0];
    const Value code = lacks(from) ? encode(x, from) : bitcast(x, u8);
    return Values{lacks(to) ? decode(code, to) : bitcast(code, to)};
  }

  const Graph& graph_;
  const HasType& has_type_;
  const IsClaimed& is_claimed_;
  Rebuilder out_;
  std::map<ValueId, Values> parts_;
};

}  // namespace

Graph legalize(const Graph& graph, const HasType& has_type, const IsClaimed& is_claimed) {
  Legalizer legalizer(graph, has_type, is_claimed);
  if (!legalizer.has_work()) return graph;
  // Rules are written with builders of composites too; and what nobody reads of the two forms of a value goes.
  return expand(legalizer.run(), is_claimed);
}

}  // namespace rlx
