#include "lowering/kernels_only/kernel_claims.h"

namespace rlx {

std::vector<const Claim*> kernel_claims(bool all) {
  std::vector<const Claim*> claims{&window_claim(), &factor_claim(), &destination_claim(), &split_claim()};
  if (all) claims.push_back(&block_claim());
  return claims;
}

}  // namespace rlx
