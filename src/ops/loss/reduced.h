#pragma once
#include "rlx/ops.h"

namespace rlx {

/// A loss of each element (or example), put together as asked.
inline Value reduced(Value loss, Reduction reduction) {
  return reduction == Reduction::none ? loss : reduction == Reduction::sum ? sum_all(loss) : mean_all(loss);
}

}  // namespace rlx
