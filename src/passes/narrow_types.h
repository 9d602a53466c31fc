#pragma once
#include "rlx/graph.h"

namespace rlx {

// Element types that processors lack, as elements of wider ones: 8-bit floats as f32, 4-bit integers as i8 and u8. A number of the narrow
// type is its *part*: the same number in the wider type. Its *code* is the bits as u8: all eight, or the low four.

bool is_narrow(DType t);

/// The type that stands for elements of `t`: of a narrow type, or of the real and imaginary part of a complex one.
DType part_type(DType t);

/// Numbers of type `t` from their codes, and back: rounded half to even, overflow as `base/small_float.h` has it.
Value decode(Value code, DType t);
/// `x` is f32 or f64 for a float, else a part of `t`.
Value encode(Value x, DType t);

/// A part after arithmetic: integers wrap to four bits, floats keep what f32 holds, as f16 does between a load and a store.
Value wrapped(Value part, DType t);

/// A part after max or min, which of no elements are the ends of the wider type: those of `t` instead, -448 and 448 of f8e4m3.
Value bounded(Value part, DType t);

/// `x` of any type that kernels have as a part of `t`: floats rounded to it, integers wrapped or saturated, as `cast` does.
Value cast_to_part(Value x, DType t);

/// A part of `t` from the number that `Array::set_double` would store: for fill values.
Value saturated(Value part, DType t);

}  // namespace rlx
