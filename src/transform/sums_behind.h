#pragma once
#include "ops/control/control.h"

namespace rlx {

/// The results of a scan. Carries to which its steps only add products or sums are computed behind it, from what the steps multiply or sum:
/// by one dot that contracts the steps too, where the loop would read and write the whole carry in each of them. Only where no step keeps
/// more elements for it than the carry has, and than twice those that it reads of the scanned operands.
Values scan_with_sums_behind(const Scan& op, const Values& operands);

}  // namespace rlx
