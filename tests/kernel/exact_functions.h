#pragma once
#include <cmath>
#include <vector>

#include "ops/scalar/scalar.h"

namespace rlx::test {

/// A function of one operand that kernels have a formula for, and the C library's in T.
template <class T>
struct MathFunction {
  ScalarOp op;
  T (*exact)(T);
};

template <class T>
const std::vector<MathFunction<T>>& math_functions() {
  static const std::vector<MathFunction<T>> all{
      {ScalarOp::exp, std::exp},     {ScalarOp::expm1, std::expm1}, {ScalarOp::log, std::log},
      {ScalarOp::log1p, std::log1p}, {ScalarOp::tanh, std::tanh},   {ScalarOp::sin, std::sin},
      {ScalarOp::cos, std::cos},     {ScalarOp::atan, std::atan},   {ScalarOp::erf, std::erf},
  };
  return all;
}

}  // namespace rlx::test
