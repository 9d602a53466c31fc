#include "passes/storage_form.h"

#include "ir/sources.h"
#include "ops/scalar/reinterpret.h"
#include "passes/narrow_types.h"
#include "rlx/ops.h"

namespace rlx {
namespace {

Dims with_axis(Dims shape, Dim size) {
  shape.push_back(std::move(size));
  return shape;
}

/// Element `which` of the last axis, which disappears.
Value element(Value x, std::int64_t which) {
  return reshape(slice_axis(x, -1, which, which + 1), Dims(x.shape().begin(), x.shape().end() - 1));
}
/// The values as elements of a new last axis.
Value interleaved(Value first, Value second) {
  const Dims shape = with_axis(first.shape(), 1);
  return concat({reshape(first, shape), reshape(second, shape)}, first.rank());
}

bool has_even_rows(const Type& type) { return type.rank() > 0 && type.shape.back().is_static() && type.shape.back().value() % 2 == 0; }

/// Whether index maps say where each element lies: always, but for 4-bit integers that share a byte with elements of another row, or with
/// none, where sizes are symbolic.
bool has_known_places(const Type& type) { return !is_packed(type.dtype) || type.is_static() || has_even_rows(type); }

/// The bytes of packed 4-bit integers as an array: one axis, or shorter rows where none ends within a byte.
Dims byte_shape(const Type& type) {
  if (!has_even_rows(type)) return {(type.size().value() + 1) / 2};
  Dims shape = type.shape;
  shape.back() = shape.back().value() / 2;
  return shape;
}

Value unpack(Value stored) {
  const Type& type = stored.type();
  Value bytes = reinterpret(stored, u8, byte_shape(type));
  Value codes = interleaved(logical_and(bytes, scalar(bytes, 15, u8)), shr(bytes, scalar(bytes, 4, u8)));
  if (has_even_rows(type)) return reshape(codes, type.shape);
  return reshape(slice_axis(reshape(codes, {codes.type().size()}), 0, 0, type.size()), type.shape);
}

Value pack(Value codes, const Type& type) {
  const Dims bytes = byte_shape(type);
  if (!has_even_rows(type)) {
    codes = reshape(codes, {type.size()});
    codes = pad(codes, {0}, {bytes[0] * 2 - type.size()});
  }
  codes = reshape(codes, with_axis(bytes, 2));
  Value high = element(codes, 1);
  return reinterpret(logical_or(element(codes, 0), shl(high, scalar(high, 4, u8))), type.dtype, type.shape);
}

}  // namespace

bool has_parts(DType t) { return is_complex(t) || is_narrow(t); }

Values load_parts(Value stored) {
  const Type& type = stored.type();
  if (!has_known_places(type)) return {cast(stored, part_type(type.dtype))};
  if (is_complex(type.dtype)) {
    Value pairs = reinterpret(stored, part_type(type.dtype), with_axis(type.shape, 2));
    return {element(pairs, 0), element(pairs, 1)};
  }
  return {decode(is_packed(type.dtype) ? unpack(stored) : reinterpret(stored, u8, type.shape), type.dtype)};
}

Value store_parts(const Values& parts, const Type& type) {
  if (!has_known_places(type)) return cast(parts[0], type.dtype);
  if (is_complex(type.dtype)) return reinterpret(interleaved(parts[0], parts[1]), type.dtype, type.shape);
  Value codes = encode(parts[0], type.dtype);
  return is_packed(type.dtype) ? pack(codes, type) : reinterpret(codes, type.dtype, type.shape);
}

Values constant_parts(GraphData& graph, const Array& value) {
  const DType part = part_type(value.dtype());
  const std::complex<double> number = value.get_complex(0);
  Values parts;
  for (double x : {number.real(), number.imag()}) {
    Array one(part, value.shape());
    one.set_double(0, x);
    parts.push_back(make_constant(graph, std::move(one)));
    if (!is_complex(value.dtype())) break;
  }
  return parts;
}

}  // namespace rlx
