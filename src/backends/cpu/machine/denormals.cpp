#include "backends/cpu/machine/denormals.h"

#include <cstdint>

#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace rlx::cpu {
namespace {

#if defined(__x86_64__)
constexpr unsigned flush = 0x8040;  // of MXCSR: flush to zero, denormals are zero
unsigned float_control() { return _mm_getcsr(); }
void set_float_control(unsigned bits) { _mm_setcsr(bits); }
#elif defined(__aarch64__)
constexpr unsigned flush = 1u << 24;  // of FPCR: operands and results of 32 and 64 bits
unsigned float_control() {
  std::uint64_t bits = 0;
  asm volatile("mrs %0, fpcr" : "=r"(bits));
  return static_cast<unsigned>(bits);  // the upper half is reserved
}
void set_float_control(unsigned bits) { asm volatile("msr fpcr, %0" : : "r"(std::uint64_t{bits})); }
#else
constexpr unsigned flush = 0;
unsigned float_control() { return 0; }
void set_float_control(unsigned) {}
#endif

}  // namespace

FlushDenormals::FlushDenormals() : saved_(float_control()) { set_float_control(saved_ | flush); }
FlushDenormals::~FlushDenormals() { set_float_control(saved_); }

KeepDenormals::KeepDenormals() : saved_(float_control()) { set_float_control(saved_ & ~flush); }
KeepDenormals::~KeepDenormals() { set_float_control(saved_); }

void flush_denormals() { set_float_control(float_control() | flush); }

}  // namespace rlx::cpu
