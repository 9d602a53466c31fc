// Runs the rules that kernels are made from (sources, address, loop) element by element on integers.
#include <algorithm>
#include <complex>
#include <cstring>
#include <limits>

#include "ir/array_type.h"
#include "ir/extremum.h"
#include "ir/reference.h"

namespace rlx {
namespace {

using Numbers = std::vector<std::int64_t>;

/// Elements of an operand that index maps read: operand, position in it, and the limit to clamp to.
struct LoadedAtom {
  int operand;
  std::vector<Index> at;
  std::optional<Dim> limit;
};

std::int64_t floor_div(std::int64_t a, std::int64_t b) { return a / b - (a % b != 0 && (a % b < 0) != (b < 0)); }

/// What an index needs to become a number.
struct Point {
  const Numbers& variables;  // by id
  std::span<const Array> operands;
  const std::vector<LoadedAtom>& loads;
};

std::int64_t value_of(const Index& index, const Point& point);

std::int64_t flat_position(const std::vector<Index>& index, const Array& array, const Point& point) {
  std::int64_t flat = 0;
  for (std::size_t d = 0; d < index.size(); ++d) {
    const std::int64_t i = value_of(index[d], point), size = array.shape()[d];
    if (i < 0 || i >= size) fail_internal("index map: reads element {} of axis {} with size {}", i, d, size);
    flat = flat * size + i;
  }
  return flat;
}

std::int64_t load(const LoadedAtom& atom, const Point& point) {
  const Array& array = point.operands[static_cast<std::size_t>(atom.operand)];
  const std::int64_t value = array.get_int(flat_position(atom.at, array, point));
  return atom.limit ? std::clamp<std::int64_t>(value, 0, std::max<std::int64_t>(atom.limit->value() - 1, 0)) : value;
}

std::int64_t value_of(const Atom& atom, const Point& point) {
  switch (atom.kind) {
    case Atom::Kind::variable: return point.variables[static_cast<std::size_t>(atom.id)];
    case Atom::Kind::loaded: return load(point.loads[static_cast<std::size_t>(atom.id)], point);
    case Atom::Kind::quotient: return floor_div(value_of(*atom.numerator, point), atom.denominator.value());
    case Atom::Kind::remainder: break;
  }
  const std::int64_t a = value_of(*atom.numerator, point), b = atom.denominator.value();
  return a - floor_div(a, b) * b;
}

std::int64_t value_of(const Index& index, const Point& point) {
  std::int64_t total = index.constant().value();
  for (const Index::Term& term : index.terms()) total += term.coefficient.value() * value_of(*term.atom, point);
  return total;
}

bool holds(const Guard& guard, const Point& point) {
  const std::int64_t value = value_of(guard.index, point);
  return guard.kind == Guard::Kind::non_negative ? value >= 0 : value == 0;
}

const Source& chosen(const std::vector<Source>& sources, const Point& point) {
  for (const Source& source : sources)
    if (std::all_of(source.guards.begin(), source.guards.end(), [&](const Guard& g) { return holds(g, point); })) return source;
  fail_internal("index map: no source covers an element");
}

void copy_element(const Array& from, std::int64_t i, Array& to, std::int64_t j) {
  if (is_packed(to.dtype())) return to.set_uint(j, from.get_uint(i));
  const auto width = static_cast<std::size_t>(bytes_for(to.dtype(), 1));
  std::memcpy(to.mutable_bytes().data() + static_cast<std::size_t>(j) * width, from.bytes().data() + static_cast<std::size_t>(i) * width,
              width);
}

void write(const std::vector<Source>& sources, const Point& point, Array& to, std::int64_t j) {
  const Source& source = chosen(sources, point);
  if (source.operand == Source::fill_value) return to.set_double(j, source.fill);
  if (source.operand == Source::index_value) return to.set_int(j, value_of(source.index[0], point));
  const Array& from = point.operands[static_cast<std::size_t>(source.operand)];
  copy_element(from, flat_position(source.index, from, point), to, j);
}

std::complex<double> read(const std::vector<Source>& sources, const Point& point) {
  const Source& source = chosen(sources, point);
  if (source.operand == Source::fill_value) return source.fill;
  if (source.operand == Source::index_value) return static_cast<double>(value_of(source.index[0], point));
  const Array& from = point.operands[static_cast<std::size_t>(source.operand)];
  return from.get_complex(flat_position(source.index, from, point));
}

/// Advances a row-major position; false after the last one.
bool next(Numbers& at, std::size_t begin, const Numbers& extents) {
  for (std::size_t d = extents.size(); d-- > 0;) {
    if (++at[begin + d] < extents[d]) return true;
    at[begin + d] = 0;
  }
  return false;
}

std::complex<double> combine(ReduceKind kind, std::complex<double> a, std::complex<double> b) {
  switch (kind) {
    case ReduceKind::sum: return a + b;
    case ReduceKind::prod: return a * b;
    case ReduceKind::max: return maximum(a.real(), b.real());
    case ReduceKind::min: return minimum(a.real(), b.real());
  }
  return a;
}

double neutral(ReduceKind kind) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  switch (kind) {
    case ReduceKind::sum: return 0;
    case ReduceKind::prod: return 1;
    case ReduceKind::max: return -infinity;
    case ReduceKind::min: return infinity;
  }
  return 0;
}

/// The reduction of one element: `variables` holds the position in the result, then the loop variables, all 0.
std::complex<double> reduce(const Loop& loop, const Numbers& extents, Numbers& variables, std::size_t rank, const Point& point) {
  std::complex<double> total = neutral(loop.kind);
  if (std::find(extents.begin(), extents.end(), 0) != extents.end()) return total;
  do {
    std::complex<double> value = 1;
    for (const auto& factor : loop.factors) value *= read(factor, point);
    total = combine(loop.kind, total, value);
  } while (next(variables, rank, extents));
  return total;
}

}  // namespace

Array evaluate_index_map(const OpDef& op, const Attrs& attrs, std::span<const Array> operands) {
  std::vector<Type> types;
  for (const Array& x : operands) types.push_back(type_of(x));
  const Type type = op.infer(attrs, types)[0];
  Numbers shape, extents;
  std::vector<Index> at;
  for (const Dim& dim : type.shape) {
    at.push_back(Index::variable(static_cast<int>(shape.size()), dim));
    shape.push_back(dim.value());
  }
  Array result(type.dtype, shape);
  if (result.size() == 0) return result;
  std::vector<LoadedAtom> loads;
  std::vector<Source> sources;
  Loop loop;
  const ReadIndex read_index = [&](int operand, const std::vector<Index>& where, std::optional<Dim> limit) {
    loads.push_back({operand, where, limit});
    return Index::loaded(static_cast<int>(loads.size()) - 1, limit.value_or(Dim(std::numeric_limits<std::int32_t>::max())));
  };
  const FreshVariable fresh = [&](const Dim& extent) {
    extents.push_back(extent.value());
    return Index::variable(static_cast<int>(shape.size() + extents.size()) - 1, extent);
  };
  if (op.sources) sources = op.sources(attrs, types, type, at);
  else if (op.address) sources = op.address(attrs, types, type, at, read_index);
  else if (op.loop) loop = op.loop(attrs, types, type, at, fresh);
  else fail("rlx.{}: has no index map", op.name);

  Numbers variables(shape.size() + extents.size(), 0);
  const Point point{variables, operands, loads};
  for (std::int64_t i = 0; i < result.size(); ++i) {
    if (op.sources || op.address) write(sources, point, result, i);
    else result.set_complex(i, reduce(loop, extents, variables, shape.size(), point));
    next(variables, 0, shape);
  }
  return result;
}

}  // namespace rlx
