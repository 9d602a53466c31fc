#include "backends/cpu/machine/portable_vectors.h"
#include "backends/cpu/quantized/block_kernel_table.h"
#include "backends/cpu/quantized/narrow_tile.h"

namespace rlx::cpu {
namespace {

struct Portable {
  static constexpr int lanes = 4;
  static constexpr bool raised = false;
  using Fours = Units32x4;
  using Ints = Ints32x4;
  using Floats = Floats32x4;
  struct Bytes {
    std::int8_t of[RowFormat::step];
  };

  template <class Byte>
  static Ints widened(const std::byte* from) {
    typedef Byte Four __attribute__((vector_size(4)));
    return __builtin_convertvector(read_as<Four>(from), Ints);
  }
  static Floats halves(const std::byte* from) { return widened_halves(from); }
  static Ints unsigned_bytes(const std::byte* from) { return widened<std::uint8_t>(from); }
  static Ints signed_bytes(const std::byte* from) { return widened<std::int8_t>(from); }
  static Fours look_up(const std::int8_t (&table)[16], Fours codes) {
    std::uint8_t bytes[sizeof codes];
    __builtin_memcpy(bytes, &codes, sizeof codes);
    for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(table[byte & 15]);
    return read_as<Fours>(reinterpret_cast<const std::byte*>(bytes));
  }
  static Bytes bytes(const Ints (&of)[8]) {
    Bytes all;
    for (int i = 0; i < RowFormat::step; ++i) all.of[i] = static_cast<std::int8_t>(of[i / lanes][i % lanes]);
    return all;
  }
  static Floats splat(float x) { return Floats{} + x; }
  static Floats multiply_add(Floats a, Floats b, Floats sum) { return a * b + sum; }

  template <class Codes, int begin, int count>
  static Ints dot(const Fours (&weights)[8], const std::byte* x) {
    Ints sum{};
#pragma GCC unroll 8
    for (int j = begin; j < begin + count; ++j)
      sum = add_products(four_bytes(weights[j]), four_bytes(Fours{} + read_as<std::uint32_t>(x + 4 * j)), sum);
    return sum;
  }
};

}  // namespace

constinit const BlockKernelTable portable_block_kernels = for_block_types<BlockKernelTable, Portable, NarrowKernels<Portable>>();

}  // namespace rlx::cpu
