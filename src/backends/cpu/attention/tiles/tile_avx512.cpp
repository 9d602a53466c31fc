#include "backends/cpu/attention/tiles/vectors_avx512.h"

namespace rlx::cpu {

constexpr AttentionKernel avx512_attention = make_attention_kernel<Floats>();

}  // namespace rlx::cpu
