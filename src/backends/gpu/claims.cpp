#include "backends/gpu/claims.h"

#include <algorithm>

#include "backends/gpu/attention/claim.h"
#include "backends/gpu/products/block_claim.h"
#include "backends/gpu/products/claim.h"
#include "lowering/kernels_only/kernel_claims.h"

namespace rlx::gpu {

std::vector<const Claim*> claims(bool all) {
  std::vector<const Claim*> list;
  if (all) list.push_back(&attention_claim());
  list.push_back(&product_claim());
  if (all) list.push_back(&block_product_claim());
  std::ranges::copy(kernel_claims(all), std::back_inserter(list));
  return list;
}

}  // namespace rlx::gpu
