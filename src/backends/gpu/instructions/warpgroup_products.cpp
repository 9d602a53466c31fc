#include "backends/gpu/instructions/warpgroup_products.h"

#include <fmt/format.h>

namespace rlx::gpu {

std::string registers_of_sums(int count) {
  std::string numbers;
  for (int i = 0; i < count; ++i) numbers += fmt::format("{}%{}", i == 0 ? "" : ", ", i);
  return numbers;
}

std::string constraints_of_sums(int count) {
  std::string sums;
  for (int i = 0; i < count; ++i) sums += fmt::format("{}\"+f\"(sum[{}])", i == 0 ? "" : ", ", i);
  return sums;
}

std::string group_product(DType element, int columns) {
  const int registers = columns / 2;
  const std::string type(name(element));
  return fmt::format(
      "#if defined(rlx_native_groups) && !defined(rlx_group_{0}_{1})\n#define rlx_group_{0}_{1}\n"
      "template <int a_across, int b_across>\n"
      "rlx_inside void rlx_multiply_group(rlx_{0}, float (&sum)[{2}], unsigned long long a, unsigned long long b, int add) {{\n"
      "  asm volatile(\"{{\\n.reg .pred adds;\\nsetp.ne.b32 adds, %{3}, 0;\\n\"\n"
      "      \"wgmma.mma_async.sync.aligned.m64n{1}k16.f32.{0}.{0} {{{4}}}, %{2}, %{5}, adds, 1, 1, %{6}, %{7};\\n}}\"\n"
      "      : {8} : \"l\"(a), \"l\"(b), \"r\"(add), \"n\"(a_across), \"n\"(b_across));\n}}\n#endif\n",
      type, columns, registers, registers + 2, registers_of_sums(registers), registers + 1, registers + 3, registers + 4,
      constraints_of_sums(registers));
}

}  // namespace rlx::gpu
