#pragma once
#include <vector>

#include "ir/index.h"

namespace rlx {

/// Where the element `at` of shape `to` lies in `from`. Axes that both have, from the last or the first one on, keep their index as it is,
/// also where guards let it leave the axis, as behind a pad; what lies between them is counted through.
std::vector<Index> reshaped_index(const std::vector<Index>& at, const Dims& to, const Dims& from);

}  // namespace rlx
