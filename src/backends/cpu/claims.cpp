#include "backends/cpu/claims.h"

#include "backends/cpu/attention/claim.h"
#include "backends/cpu/product/claim.h"
#include "backends/cpu/quantized/claim.h"
#include "backends/cpu/routines/claim.h"
#include "backends/cpu/state_update/claim.h"

namespace rlx::cpu {

std::vector<const Claim*> claims(bool all) {
  if (!all) return {&state_update_claim()};
  return {&attention_claim(), &block_dot_claim(), &routine_claim(), &state_update_claim(), &product_claim()};
}

}  // namespace rlx::cpu
