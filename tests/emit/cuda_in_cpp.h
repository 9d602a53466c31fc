#pragma once
#include <string_view>

// CUDA C++ and HIP without a GPU: C++ by any compiler, in which every thread is a call, or a fiber where threads wait for each other.
namespace rlx::test {

/// Where a thread is, and what runs all of them: also for other languages than CUDA C++. It stands before all else.
inline constexpr std::string_view threads_in_cpp = R"(#ifndef threads_in_cpp
#define threads_in_cpp
struct Place { unsigned x, y, z; };
static thread_local Place threadIdx, blockIdx, blockDim, gridDim;

// As fake_gpu/lanes.h has it.
struct FakeLanes {
  bool (*run)(void (*lane)(void*), void* of, void (*enter)(unsigned), unsigned lanes, unsigned warp, unsigned seed);
  void (*wait_for_block)();
  void (*wait_for_warp)();
  unsigned (*exchange)(unsigned given, unsigned from);
  void (*give_way)();
};
struct Launched {
  void** arguments;
  unsigned blocks, threads, warp, seed;
  unsigned char* on_chip;  // that the launch adds
  unsigned long on_chip_bytes;
  const FakeLanes* lanes;  // null: no thread waits for others
};
static const Launched* fake_launch;

#ifndef address_offset
#define address_offset 0
#endif
template <class A> struct Argument {
  static A read(const void* from) {
    A value;
    __builtin_memcpy(&value, from, sizeof value);
    return value;
  }
};
template <class To> struct Argument<To*> {
  static To* read(const void* from) { return (To*)(Argument<unsigned long>::read(from) - address_offset); }
};
template <int...> struct Numbers {};
template <int n, int... more> struct UpTo : UpTo<n - 1, n - 1, more...> {};
template <int... all> struct UpTo<0, all...> { typedef Numbers<all...> Type; };

__attribute__((no_sanitize("thread"))) static void enter(unsigned thread) { threadIdx.x = thread; }
/// A kernel with its arguments.
template <class... A> struct Kernel {
  void (*kernel)(A...);
  template <int... number> void call(Numbers<number...>) const { kernel(Argument<A>::read(fake_launch->arguments[number])...); }
  static void lane(void* of) { ((const Kernel*)of)->call(typename UpTo<sizeof...(A)>::Type()); }
};
extern "C" char __start_on_chip[] __attribute__((weak, visibility("hidden"))), __stop_on_chip[] __attribute__((weak, visibility("hidden")));
static inline void fake_poison(void* from, unsigned long bytes) { __builtin_memset(from, 0xff, bytes); }

/// All blocks and threads, one after the other, in an order that is none. False where threads wait for ever.
template <class... A> bool run_threads(void (*of)(A...), const Launched& launch) {
  fake_launch = &launch;
  Kernel<A...> kernel{of};
  const unsigned long prime = 1000003;
  blockDim.x = launch.threads;
  gridDim.x = launch.blocks;
  bool ends = true;
  for (unsigned b = 0; b < launch.blocks && ends; ++b) {
    blockIdx.x = (unsigned)((b * prime + launch.seed) % launch.blocks);
    if (launch.lanes) {
      if (launch.on_chip_bytes) fake_poison(launch.on_chip, launch.on_chip_bytes);
      if (__start_on_chip) fake_poison(__start_on_chip, (unsigned long)(__stop_on_chip - __start_on_chip));
      ends = launch.lanes->run(kernel.lane, &kernel, enter, launch.threads, launch.warp, launch.seed + b);
    } else {
      for (unsigned t = 0; t < launch.threads; ++t) {
        threadIdx.x = (unsigned)((t * prime + launch.seed + b) % launch.threads);
        kernel.lane(&kernel);
      }
    }
  }
  fake_launch = 0;
  return ends;
}
template <class... A> struct ArgumentBytes {
  static constexpr int all[] = {sizeof(A)..., 0};
};
template <class... A> constexpr const int* bytes_of_arguments(void (*)(A...)) { return ArgumentBytes<A...>::all; }
template <class... A> constexpr int count_arguments(void (*)(A...)) { return sizeof...(A); }
#endif
)";

/// What CUDA C++ has and C++ has not, without any header of the system: most time would be spent in these. Texts may stand in one file,
/// behind threads_in_cpp.
inline constexpr std::string_view cuda_in_cpp = R"(#ifndef cuda_in_cpp
#define cuda_in_cpp
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wunused-variable"
#pragma GCC diagnostic ignored "-Wpragmas"
#pragma GCC diagnostic ignored "-Wpass-failed"
#define __global__
#define __device__
#define __launch_bounds__(...)
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
#define fmaxf __builtin_fmaxf
#define exp2f __builtin_exp2f
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
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __forceinline__ inline
#ifdef __SANITIZE_ADDRESS__
#define __shared__ static  // in a section of their own, arrays have nothing around them that is watched
#else
#define __shared__ static __attribute__((section("on_chip")))
#endif
struct float2 { float x, y; } __attribute__((aligned(8), may_alias));
struct float4 { float x, y, z, w; } __attribute__((aligned(16), may_alias));
struct int2 { int x, y; } __attribute__((aligned(8), may_alias));
struct int4 { int x, y, z, w; } __attribute__((aligned(16), may_alias));
struct uint2 { unsigned x, y; } __attribute__((aligned(8), may_alias));
struct uint4 { unsigned x, y, z, w; } __attribute__((aligned(16), may_alias));
static inline float2 make_float2(float x, float y) { return {x, y}; }
static inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
static inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
static inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
static inline int atomicAdd(int* at, int by) { return *at += by, *at - by; }
static inline float __int_as_float(int bits) {
  float y;
  memcpy(&y, &bits, 4);
  return y;
}

static inline int __float_as_int(float x) {
  int y;
  memcpy(&y, &x, 4);
  return y;
}
static inline unsigned __float_as_uint(float x) { return (unsigned)__float_as_int(x); }
static inline float __uint_as_float(unsigned bits) { return __int_as_float((int)bits); }

static inline void __syncthreads() { fake_launch->lanes->wait_for_block(); }
static inline void __syncwarp(unsigned = ~0u) { fake_launch->lanes->wait_for_warp(); }
template <class T> static inline T fake_exchange(T value, unsigned from) {
  constexpr unsigned words = (sizeof(T) + 3) / 4;
  unsigned parts[words] = {};
  memcpy(parts, &value, sizeof value);
  for (unsigned i = 0; i < words; ++i) parts[i] = fake_launch->lanes->exchange(parts[i], from);
  memcpy(&value, parts, sizeof value);
  return value;
}
static inline unsigned fake_lane_of_warp() { return threadIdx.x % fake_launch->warp; }
/// A lane of another part of `width` lanes is none: the thread then has its own value.
template <class T> static inline T fake_exchange_in(T value, unsigned from, unsigned width) {
  const unsigned me = fake_lane_of_warp();
  return fake_exchange(value, from / width == me / width ? from : me);
}
#define warpSize ((int)fake_launch->warp)
template <class T> static inline T __shfl_xor(T value, unsigned bits, unsigned width = 32) {
  return fake_exchange_in(value, fake_lane_of_warp() ^ bits, width);
}
template <class T> static inline T __shfl_down(T value, unsigned by, unsigned width = 32) {
  return fake_exchange_in(value, fake_lane_of_warp() + by, width);
}
template <class T> static inline T __shfl_up(T value, unsigned by, unsigned width = 32) {
  return fake_exchange_in(value, fake_lane_of_warp() - by, width);
}
template <class T> static inline T __shfl(T value, unsigned from, unsigned width = 32) {
  return fake_exchange_in(value, fake_lane_of_warp() / width * width + from % width, width);
}
template <class T> static inline T __shfl_xor_sync(unsigned, T value, unsigned bits, unsigned width = 32) {
  return __shfl_xor(value, bits, width);
}
template <class T> static inline T __shfl_down_sync(unsigned, T value, unsigned by, unsigned width = 32) {
  return __shfl_down(value, by, width);
}
template <class T> static inline T __shfl_up_sync(unsigned, T value, unsigned by, unsigned width = 32) {
  return __shfl_up(value, by, width);
}
template <class T> static inline T __shfl_sync(unsigned, T value, unsigned from, unsigned width = 32) { return __shfl(value, from, width); }
#endif
)";

}  // namespace rlx::test
