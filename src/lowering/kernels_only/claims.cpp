#include "lowering/kernels_only/claims.h"

namespace rlx {

std::vector<const Claim*> kernel_claims() { return {&window_claim(), &factor_claim(), &destination_claim()}; }

}  // namespace rlx
