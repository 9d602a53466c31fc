#include <cmath>

#include "backends/cpu/routines/linalg/matrix_code.h"

namespace rlx::cpu {
namespace {

/// 128-bit vectors by the compiler's own extension: SSE2 on x86-64, NEON on ARM, plain code elsewhere.
template <class T>
struct Simd128 {
  using Element = T;
  typedef T Vector __attribute__((vector_size(16)));
  typedef T Unaligned __attribute__((vector_size(16), aligned(alignof(T)), may_alias));
  static constexpr int lanes = 16 / sizeof(T);
  static Vector load(const T* from) { return *reinterpret_cast<const Unaligned*>(from); }
  static void store(T* to, Vector x) { *reinterpret_cast<Unaligned*>(to) = x; }
  static Vector all(T x) { return Vector{} + x; }
  static Vector subtract_product(Vector a, Vector b, Vector c) { return c - a * b; }
  static bool any_larger(Vector x, T than) {
    for (int l = 0; l < lanes; ++l)
      if (magnitude(x[l]) > than) return true;
    return false;
  }
  static T magnitude(T x) { return std::abs(x); }
  static T conjugate(T x) { return x; }
  static bool positive(T x) { return x > 0; }
  static T root(T x) { return std::sqrt(x); }
};

/// Complex numbers one at a time, both parts in one vector. (GCC 12 makes vectors of plain structs by itself, and then reads beyond the
/// last.)
template <class T>
struct OneComplex {
  typedef T Parts __attribute__((vector_size(2 * sizeof(T))));
  struct Vector {
    Parts parts;
    friend Vector operator/(Vector a, Vector b) {
      const Complex<T> y = Complex<T>{a.parts[0], a.parts[1]} / Complex<T>{b.parts[0], b.parts[1]};
      return {Parts{y.re, y.im}};
    }
  };
  using Element = Complex<T>;
  static constexpr int lanes = 1;
  static Vector load(const Element* from) {
    Vector x;
    __builtin_memcpy(&x, from, sizeof x);
    return x;
  }
  static void store(Element* to, Vector x) { *to = {x.parts[0], x.parts[1]}; }
  static Vector all(const Element& x) { return load(&x); }
  static Vector subtract_product(Vector a, Vector b, Vector c) {
    const Parts turned{-b.parts[1], b.parts[0]};
    return {c.parts - b.parts * a.parts[0] - turned * a.parts[1]};
  }
  static T magnitude(Element x) { return std::abs(x.re) + std::abs(x.im); }  // as LAPACK's pivots
  static Element conjugate(Element x) { return {x.re, -x.im}; }
  static bool positive(Element x) { return x.re > 0; }
  static Element root(Element x) { return {std::sqrt(x.re), 0}; }
};

constexpr MatrixKernel<float> portable_matrix_f32 = MatrixCode<Simd128<float>>::table();
constexpr MatrixKernel<double> portable_matrix_f64 = MatrixCode<Simd128<double>>::table();
constexpr MatrixKernel<Complex<float>> matrix_c64 = MatrixCode<OneComplex<float>>::table();
constexpr MatrixKernel<Complex<double>> matrix_c128 = MatrixCode<OneComplex<double>>::table();

}  // namespace

#ifdef __x86_64__
extern const MatrixKernel<float> avx2_matrix_f32, avx512_matrix_f32;
extern const MatrixKernel<double> avx2_matrix_f64, avx512_matrix_f64;
#endif

template <>
const MatrixKernel<float>& matrix_kernel<float>([[maybe_unused]] CpuLevel level) {
#ifdef __x86_64__
  if (level >= CpuLevel::avx2) return level >= CpuLevel::avx512 ? avx512_matrix_f32 : avx2_matrix_f32;
#endif
  return portable_matrix_f32;
}
template <>
const MatrixKernel<double>& matrix_kernel<double>([[maybe_unused]] CpuLevel level) {
#ifdef __x86_64__
  if (level >= CpuLevel::avx2) return level >= CpuLevel::avx512 ? avx512_matrix_f64 : avx2_matrix_f64;
#endif
  return portable_matrix_f64;
}
template <>
const MatrixKernel<Complex<float>>& matrix_kernel<Complex<float>>(CpuLevel) {
  return matrix_c64;
}
template <>
const MatrixKernel<Complex<double>>& matrix_kernel<Complex<double>>(CpuLevel) {
  return matrix_c128;
}

}  // namespace rlx::cpu
