#include "backends/cpu/claims.h"

#include "backends/cpu/attention/claim.h"
#include "backends/cpu/product/claim.h"
#include "backends/cpu/quantized/claim.h"
#include "backends/cpu/routines/claim.h"
#include "backends/cpu/state_update/claim.h"
#include "lowering/kernels_only/kernel_claims.h"

namespace rlx::cpu {

std::vector<const Claim*> claims(bool all) {
  if (!all) return {&state_update_claim(), &destination_claim(), &split_claim()};
  // Products come last, as attention says what they may leave to it; scatters into states before the routine for scatters.
  return {&state_update_claim(), &attention_claim(),   &block_dot_claim(), &routine_claim(),
          &product_claim(),      &destination_claim(), &split_claim()};
}

}  // namespace rlx::cpu
