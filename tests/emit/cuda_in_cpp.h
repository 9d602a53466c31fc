#pragma once
#include <string_view>

// CUDA C++ and HIP without a GPU: C++ by any compiler, in which every thread is a call.
namespace rlx::test {

/// What CUDA C++ has and C++ has not, without any header of the system: most time would be spent in these. Texts may stand in one file.
inline constexpr std::string_view cuda_in_cpp = R"(#ifndef cuda_in_cpp
#define cuda_in_cpp
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wunused-variable"
#pragma GCC diagnostic ignored "-Wpragmas"
#pragma GCC diagnostic ignored "-Wpass-failed"
#define __global__
#define __device__
#define __launch_bounds__(threads)
#define memcpy __builtin_memcpy
#define signbit __builtin_signbit
#define fabsf __builtin_fabsf
#define fabs __builtin_fabs
#define floorf __builtin_floorf
#define floor __builtin_floor
#define rintf __builtin_rintf
#define rint __builtin_rint
#define sqrtf __builtin_sqrtf
#define sqrt __builtin_sqrt
#define fmaf __builtin_fmaf
#define fma __builtin_fma
#define fmodf __builtin_fmodf
#define fmod __builtin_fmod
#define expf __builtin_expf
#define exp __builtin_exp
#define expm1f __builtin_expm1f
#define expm1 __builtin_expm1
#define logf __builtin_logf
#define log __builtin_log
#define log1pf __builtin_log1pf
#define log1p __builtin_log1p
#define sinf __builtin_sinf
#define sin __builtin_sin
#define cosf __builtin_cosf
#define cos __builtin_cos
#define tanhf __builtin_tanhf
#define tanh __builtin_tanh
#define atanf __builtin_atanf
#define atan __builtin_atan
#define erff __builtin_erff
#define erf __builtin_erf
#define powf __builtin_powf
#define pow __builtin_pow
struct Place { unsigned x, y, z; };
static thread_local Place threadIdx, blockIdx, blockDim;
static inline float __int_as_float(int bits) {
  float y;
  memcpy(&y, &bits, 4);
  return y;
}

#ifndef address_offset
#define address_offset 0
#endif
template <class A> struct Argument {
  static A read(const void* from) {
    A value;
    memcpy(&value, from, sizeof value);
    return value;
  }
};
template <class To> struct Argument<To*> {
  static To* read(const void* from) { return (To*)(Argument<unsigned long>::read(from) - address_offset); }
};
template <int...> struct Numbers {};
template <int n, int... more> struct UpTo : UpTo<n - 1, n - 1, more...> {};
template <int... all> struct UpTo<0, all...> { typedef Numbers<all...> Type; };

template <class... A, int... number>
void run_numbered(void (*kernel)(A...), void** arguments, unsigned blocks, unsigned threads, unsigned seed, Numbers<number...>) {
  const unsigned long prime = 1000003;
  blockDim.x = threads;
  for (unsigned b = 0; b < blocks; ++b) {
    blockIdx.x = (unsigned)((b * prime + seed) % blocks);
    for (unsigned t = 0; t < threads; ++t) {
      threadIdx.x = (unsigned)((t * prime + seed + b) % threads);
      kernel(Argument<A>::read(arguments[number])...);
    }
  }
}
/// All threads, one after the other, in an order that is none. Pointers are less by `address_offset`.
template <class... A> void run_threads(void (*kernel)(A...), void** arguments, unsigned blocks, unsigned threads, unsigned seed) {
  run_numbered(kernel, arguments, blocks, threads, seed, typename UpTo<sizeof...(A)>::Type());
}
template <class... A> constexpr int count_arguments(void (*)(A...)) { return sizeof...(A); }
#endif
)";

}  // namespace rlx::test
