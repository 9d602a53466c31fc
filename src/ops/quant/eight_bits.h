#pragma once
#include "ops/wide.h"

namespace rlx {

/// What products with weights in blocks round the other operand to.
struct EightBits {
  static constexpr std::int64_t group = 32;  // values that share a scale

  Value codes, scales;  // integers [..., K / group, group], and what they are multiplied by [..., K / group, 1]

  /// x [..., K] with a scale for each 32 neighbours on the last axis: the largest |x| is 127 scales.
  static EightBits of(Value x) {
    Dims shape = x.shape();
    shape.back() = *Dim::exact_div(shape.back(), group);
    shape.push_back(group);
    Value groups = reshape(x, shape), most = reduce_max(abs(groups), {-1}, true);
    Value inverse = select(gt(most, like(most, 0)), 127.0 / most, like(most, 0)), scales = most / 127.0;
    return {round(groups * inverse), scales};
  }
};

}  // namespace rlx
