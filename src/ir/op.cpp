#include "ir/op.h"

#include <algorithm>
#include <bit>

#include "base/hash.h"
#include "base/names.h"
#include "ir/array_type.h"
#include "ir/graph_data.h"

namespace rlx {
namespace {

std::map<std::string_view, const OpDef*>& table() {
  static std::map<std::string_view, const OpDef*> ops;
  return ops;
}

}  // namespace

const std::map<std::string_view, const OpDef*>& op_registry() { return table(); }

void register_op(const OpDef& def) {
  auto [it, added] = table().emplace(def.name, &def);
  if (!added && it->second != &def) fail_internal("op '{}' is registered twice", def.name);
}

const OpDef& find_op(std::string_view name) {
  auto it = table().find(name);
  if (it != table().end()) return *it->second;
  std::vector<std::string_view> names;
  for (const auto& [known, def] : table()) names.push_back(known);
  fail("op '{}' is unknown{}", name, near_hint(name, names));
}

bool Axes::contains(std::int64_t axis) const { return std::find(values.begin(), values.end(), axis) != values.end(); }

std::int64_t normalize_axis(std::string_view op, std::int64_t axis, const Type& type) {
  const std::int64_t rank = type.rank();
  if (axis < -rank || axis >= rank) {
    if (rank == 0) fail("rlx.{}: axis {} is out of range: {} has no axes", op, axis, type.to_string());
    fail("rlx.{}: axis {} is out of range for {} (allowed: {}..{})", op, axis, type.to_string(), -rank, rank - 1);
  }
  return axis < 0 ? axis + rank : axis;
}

bool Type::is_static() const {
  return std::all_of(shape.begin(), shape.end(), [](const Dim& d) { return d.is_static(); });
}

std::string Type::to_string() const { return std::string(name(dtype)) + rlx::to_string(shape); }

std::string to_string(const Attr& attr) {
  struct {
    std::string operator()(bool v) const { return v ? "true" : "false"; }
    std::string operator()(std::int64_t v) const { return std::to_string(v); }
    std::string operator()(double v) const { return fmt::format("{}", v); }
    std::string operator()(const std::string& v) const { return v; }
    std::string operator()(DType v) const { return std::string(name(v)); }
    std::string operator()(const std::vector<std::int64_t>& v) const { return rlx::to_string(Dims(v.begin(), v.end())); }
    std::string operator()(const Dims& v) const { return rlx::to_string(v); }
    std::string operator()(const Array& v) const { return type_of(v).to_string(); }
    std::string operator()(const Region& v) const { return v ? v->name() : "none"; }
  } print;
  return std::visit(print, attr);
}

std::size_t hash(const Attr& attr) {
  struct {
    std::size_t operator()(bool v) const { return v; }
    std::size_t operator()(std::int64_t v) const { return static_cast<std::size_t>(v); }
    std::size_t operator()(double v) const { return std::hash<double>{}(v); }
    std::size_t operator()(const std::string& v) const { return std::hash<std::string>{}(v); }
    std::size_t operator()(DType v) const { return static_cast<std::size_t>(v); }
    std::size_t operator()(const std::vector<std::int64_t>& v) const { return (*this)(Dims(v.begin(), v.end())); }
    std::size_t operator()(const Dims& v) const {
      std::size_t h = v.size();
      for (const Dim& dim : v) h = hash_mix(h, dim.hash());
      return h;
    }
    std::size_t operator()(const Array& v) const {
      return hash_mix(std::hash<std::string_view>{}({reinterpret_cast<const char*>(v.bytes().data()), v.bytes().size()}),
                      static_cast<std::size_t>(v.dtype()));
    }
    std::size_t operator()(const Region& v) const { return v ? structural_hash(*v) : 0; }
  } hasher;
  return hash_mix(attr.index(), std::visit(hasher, attr));
}

bool equal(const Attr& a, const Attr& b) {
  if (a.index() != b.index()) return false;
  if (const auto* x = std::get_if<Region>(&a)) {
    const auto& y = std::get<Region>(b);
    return *x == y || (*x && y && structurally_equal(**x, *y));
  }
  if (const auto* x = std::get_if<double>(&a)) {  // by bits: NaN equals itself, 0 differs from -0
    const double y = std::get<double>(b);
    return std::bit_cast<std::uint64_t>(*x) == std::bit_cast<std::uint64_t>(y);
  }
  return a == b;
}

namespace detail {

void check_arity(std::string_view op, std::size_t wanted, std::size_t given) {
  if (wanted != given) fail("rlx.{}: takes {} operand{}, given {}", op, wanted, wanted == 1 ? "" : "s", given);
}

std::vector<Type> infer_from_body(const OpDef& def, const Attrs& attrs, std::span<const Type> operands) {
  Graph scratch(std::string(def.name));
  Values inputs;
  for (std::size_t i = 0; i < operands.size(); ++i) inputs.push_back(scratch.add_input({std::to_string(i), InputKind::input, operands[i]}));
  std::vector<Type> results;
  for (const Value& v : def.body(attrs, inputs)) results.push_back(v.type());
  return results;
}

}  // namespace detail
}  // namespace rlx
