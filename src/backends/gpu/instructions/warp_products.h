#pragma once
#include <string_view>

namespace rlx::gpu {

/// Functions of CUDA C++ that kernels call: products of small matrices by the lanes of a warp, and copies to memory on chip that lanes do
/// not wait for. A name that is defined stands for itself, so that a driver without a GPU brings its own.
inline constexpr std::string_view warp_products = R"(#ifndef rlx_warp_products
#define rlx_warp_products
rlx_inside unsigned rlx_on_chip_address(const void* at) { return (unsigned)__cvta_generic_to_shared(at); }
// The first `bytes` of 16 from memory, and zeros.
rlx_inside void rlx_copy_16(void* to, const void* from, int bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(rlx_on_chip_address(to)), "l"(from), "r"(bytes) : "memory");
}
// What was copied so far is one group; waits until no more than so many groups are on their way.
rlx_inside void rlx_end_group() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int groups> rlx_inside void rlx_wait_groups() { asm volatile("cp.async.wait_group %0;" ::"n"(groups) : "memory"); }
// Four matrices of 8 x 8 elements of 16 bits. Lane i gives row i % 8 of matrix i / 8, and gets elements 2 * (i % 4) and the next of row
// i / 4 of each; transposed: of column i / 4.
rlx_inside void rlx_load_matrices(unsigned (&to)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(rlx_on_chip_address(row)) : "memory");
}
rlx_inside void rlx_load_transposed(unsigned (&to)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(rlx_on_chip_address(row)) : "memory");
}
// sum (16 x 8) += a (16 x 16) * b (16 x 8); of i8 the depth is of 16 pairs.
struct rlx_bf16 {
  typedef float Sum;
};
struct rlx_f16 {
  typedef float Sum;
};
struct rlx_i8 {
  typedef int Sum;
};
rlx_inside void rlx_multiply(rlx_bf16, float (&sum)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
rlx_inside void rlx_multiply(rlx_f16, float (&sum)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
rlx_inside void rlx_multiply(rlx_i8, int (&sum)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+r"(sum[0]), "+r"(sum[1]), "+r"(sum[2]), "+r"(sum[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
#endif
)";

}  // namespace rlx::gpu
