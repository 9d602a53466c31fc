#pragma once
#include <string>
#include <string_view>

#include "rlx/dtype.h"

namespace rlx::gpu {

/// Functions of CUDA C++ for Hopper: products of matrices on chip by 128 lanes, and copies of boxes by the copy engine.
inline constexpr std::string_view warpgroup_products = R"(#ifndef rlx_warpgroup_products
#define rlx_warpgroup_products
#define rlx_native_groups
struct alignas(64) rlx_map {
  unsigned long long words[16];
};
typedef unsigned long long rlx_barrier;
rlx_inside void rlx_begin_barrier(rlx_barrier* at, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(rlx_on_chip_address(at)), "r"(arrivals) : "memory");
}
rlx_inside void rlx_begun_barriers() { asm volatile("fence.mbarrier_init.release.cluster; fence.proxy.async;" ::: "memory"); }
rlx_inside void rlx_arrive(rlx_barrier* at) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(rlx_on_chip_address(at)) : "memory");
}
// Arrives, and that many bytes are copied before the phase ends.
rlx_inside void rlx_arrive_with(rlx_barrier* at, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(rlx_on_chip_address(at)), "r"(bytes) : "memory");
}
rlx_inside void rlx_wait(rlx_barrier* at, int phase) {
  asm volatile(
      "{\n.reg .pred done;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n@done bra past;\nbra again;\npast:\n}"
      ::"r"(rlx_on_chip_address(at)), "r"(phase) : "memory");
}
// The box of the map whose first element is (x, y) of item z.
rlx_inside void rlx_copy_box(void* to, const rlx_map& map, rlx_barrier* done, int x, int y, int z) {
  asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5}], [%2];"
               ::"r"(rlx_on_chip_address(to)), "l"(&map), "r"(rlx_on_chip_address(done)), "r"(x), "r"(y), "r"(z) : "memory");
}
template <int registers> rlx_inside void rlx_fewer_registers() { asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(registers)); }
template <int registers> rlx_inside void rlx_more_registers() { asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(registers)); }
// Rows of 128 bytes, 8 of them in a turned order, as boxes are copied: what a product reads from `at` on. `next`: bytes to the next 64
// columns, where these lie side by side.
rlx_inside unsigned long long rlx_matrix(const void* at, int next) {
  return (unsigned long long)(rlx_on_chip_address(at) >> 4 & 0x3fff) | (unsigned long long)(next >> 4) << 16 | 64ull << 32 | 1ull << 62;
}
rlx_inside void rlx_begin_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
rlx_inside void rlx_end_products() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int groups> rlx_inside void rlx_wait_products() { asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(groups) : "memory"); }
#endif
)";

/// sum (64 x `columns`) += a (64 x 16) * b (16 x `columns`) by a group of four warps. `across`: an operand's rows, or columns, lie side by
/// side.
std::string group_product(DType element, int columns);
/// The first operands of such asm, and their constraints.
std::string registers_of_sums(int count);
std::string constraints_of_sums(int count);

}  // namespace rlx::gpu
