#include "backends/cpu/quantised/block_pack.h"
#include "backends/cpu/quantised/block_tables.h"
#include "backends/cpu/quantised/block_tile.h"

namespace rlx::cpu {

constinit const BlockKernel avx512_vnni_block_kernels[block_kernel_count] = {
    make_block_kernel<Nibbles, HalfScale, 8, 1, false>("Q4_0", pack_q4_0),
    make_block_kernel<Nibbles, HalfScaleAndStart, 0, 1, true>("Q4_1", pack_q4_1),
    make_block_kernel<FiveBits, HalfScale, 16, 1, false>("Q5_0", pack_q5_0),
    make_block_kernel<FiveBits, HalfScaleAndStart, 0, 1, true>("Q5_1", pack_q5_1),
    make_block_kernel<WholeBytes, HalfScale, 128, 1, false>("Q8_0", pack_q8_0),
    make_block_kernel<Nibbles, SuperScaleAndMinimum, 0, 1, true>("Q4_K", pack_q4_k),
    make_block_kernel<FiveBits, SuperScaleAndMinimum, 0, 1, true>("Q5_K", pack_q5_k),
    make_block_kernel<SixBits, SuperScale<2>, 32, 2, false>("Q6_K", pack_q6_k),
    make_block_kernel<NamedNibbles<nonlinear_numbers>, HalfScale, 128, 1, false>("IQ4_NL", pack_iq4_nl),
    make_block_kernel<NamedNibbles<nonlinear_numbers>, SuperScale<1>, 128, 1, false>("IQ4_XS", pack_iq4_xs),
    make_block_kernel<NamedNibbles<doubled_fp4_numbers>, ExponentScale, 128, 1, false>("MXFP4", pack_mxfp4),
};

}  // namespace rlx::cpu
