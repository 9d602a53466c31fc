#pragma once
#include <string>
#include <string_view>

#include "emit/scalar_text.h"

namespace rlx {

/// How a language writes functions. In patterns {name} is theirs, {A} the type of their arguments, {R} that of the result.
struct FunctionWords {
  std::string_view of_one, of_two;  // what opens a function of x, and of x and z
  std::string_view constant;        // begins that of a constant of type {T}
  std::string_view bits;            // declares {y} of type {T}: the {size} bytes of {x}
  std::string_view convert;         // to type {T} what follows in brackets
};

/// Functions that preludes share; types have the names of `scalars`.
class FunctionText {
 public:
  FunctionText(const FunctionWords& words, ScalarText& scalars) : words_(words), scalars_(scalars) {}
  /// rlx_f32_to_f16, rlx_f16_to_f32, rlx_f32_to_bf16, rlx_bf16_to_f32: narrow floats as their 16 bits. Empty: it is none of them.
  std::string narrow_float(const std::string& name) const;
  /// rlx_FROM_to_INT: truncates; saturates, NaN gives 0. `is_nan`: whether x is.
  std::string float_to_int(DType from, DType to, std::string_view is_nan) const;
  /// rlx_div_INT, rlx_rem_INT: truncating; x / 0 has all bits set, x rem 0 = x.
  std::string division(bool quotient, DType t) const;

 private:
  std::string open(std::string_view form, const std::string& name, DType argument, DType result) const;
  std::string conversion(DType t) const;
  std::string bits(DType t, std::string_view to, std::string_view from) const;

  FunctionWords words_;
  ScalarText& scalars_;
};

}  // namespace rlx
