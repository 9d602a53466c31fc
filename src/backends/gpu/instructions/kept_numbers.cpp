#include "backends/gpu/instructions/kept_numbers.h"

#include <fmt/format.h>

#include "backends/gpu/instructions/warp_products.h"
#include "backends/gpu/instructions/warpgroup_products.h"

namespace rlx::gpu {
namespace {

constexpr std::string_view inside = R"(#ifndef rlx_inside
#define rlx_inside static __device__ __forceinline__
#endif
)";

constexpr std::string_view kept_numbers = R"(#ifndef rlx_kept_numbers
#define rlx_kept_numbers
#define rlx_native_kept_numbers
// What lanes copied on chip is seen by products.
rlx_inside void rlx_show_copies() { asm volatile("fence.proxy.async;" ::: "memory"); }
// What products write is not touched before, nor behind, this place.
template <int n> rlx_inside void rlx_settle(float (&numbers)[n]) {
#pragma unroll
  for (int i = 0; i < n; ++i) asm volatile("" : "+f"(numbers[i])::"memory");
}
// Two numbers as factors of products, the first below.
rlx_inside unsigned rlx_two(rlx_bf16, float a, float b) {
  unsigned two;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(two) : "f"(b), "f"(a));
  return two;
}
rlx_inside unsigned rlx_two(rlx_f16, float a, float b) {
  unsigned two;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(two) : "f"(b), "f"(a));
  return two;
}
#endif
)";

/// As group_product, where lanes keep a, and the columns of b lie side by side.
std::string product_of_kept(std::string_view type, int columns) {
  const int n = columns / 2;
  return fmt::format(
      "#if defined(rlx_native_kept_numbers) && !defined(rlx_kept_{0}_{1})\n#define rlx_kept_{0}_{1}\n"
      "rlx_inside void rlx_multiply_kept(rlx_{0}, float (&sum)[{2}], const unsigned* a, unsigned long long b) {{\n"
      "  asm volatile(\"wgmma.mma_async.sync.aligned.m64n{1}k16.f32.{0}.{0} {{{3}}}, {{%{2}, %{4}, %{5}, %{6}}}, %{7}, 1, 1, 1, 1;\"\n"
      "      : {8} : \"r\"(a[0]), \"r\"(a[1]), \"r\"(a[2]), \"r\"(a[3]), \"l\"(b));\n}}\n#endif\n",
      type, columns, n, registers_of_sums(n), n + 1, n + 2, n + 3, n + 4, constraints_of_sums(n));
}

}  // namespace

std::string warp_numbers() { return fmt::format("{}{}{}", inside, warp_products, kept_numbers); }

std::string kept_products(DType element, int values) {
  constexpr int tile_keys = 128;
  const std::string_view type = name(element);
  return fmt::format("{}{}{}{}{}{}", inside, warp_products, warpgroup_products, kept_numbers, group_product(element, tile_keys),
                     product_of_kept(type, values));
}

}  // namespace rlx::gpu
