#pragma once
#include "ops/wide.h"

namespace rlx {

/// How scores are made: the attributes of `attention`, as numbers.
struct AttentionScoring {
  double scale = 1, softcap = 0;
  bool causal = false;
  std::int64_t window = 0;
  Dim group = 1;  // heads of q for each head of k and v

  bool by_place() const { return causal || window > 0; }
};

/// Queries (..., H, S, D) with what belongs to each: of the rank of the scores (..., H, S, K), axes of size 1 broadcast. Null: none.
struct AttentionQueries {
  Value q, mask, bias, place;  // place (..., S, 1): i32
};
/// Keys (..., Hkv, K, D) and their places (1, K), which a query sees up to its own.
struct AttentionKeys {
  Value k, place;
};
struct AttentionWeights {
  Value weights;       // (..., H, S, K)
  Value keep, capped;  // which places are seen, null: all; tanh of the scores over the soft cap, null: none
};

/// The softmax of the scores, zeros for a query that sees no key.
AttentionWeights attention_weights(const AttentionScoring& op, const AttentionQueries& queries, const AttentionKeys& keys);

/// The product of each query (or row of weights) with the keys (or values) of its own head, along the axis `contracted` of these.
Value attention_by_head(Value rows, Value shared, const Dim& group, std::int64_t contracted);

/// Whether `attention_gradient` takes them: there may be many queries and keys.
bool attention_gradient_fits(const Type& q, const Type& k);
/// The gradients of q, k, v, and of the bias where there is one, from the result y and its gradient: scores are computed again for a few
/// queries at a time, so that memory grows with queries + keys, not with their product. Dao et al. 2022, appendix B.2.
Values attention_gradient(const AttentionScoring& op, const AttentionQueries& queries, const AttentionKeys& keys, Value v, Value y,
                          Value dy, bool places_are_numbers);

}  // namespace rlx
