#pragma once
#include "rlx/op_types.h"

namespace rlx {

/// The op `attention` with the attribute int16: prompts may be computed from numbers that are rounded to integers of 16 bits, which loses
/// about as much as keys and values do as f16 numbers.
Value rounded_attention(Value q, Value k, Value v, const AttentionOptions& options);
/// The op `attention` with the attribute exact: no policy of precision narrows it, so that a query has the same bits among few and among
/// many, wherever its keys come from.
Value exact_attention(Value q, Value k, Value v, const AttentionOptions& options);

}  // namespace rlx
