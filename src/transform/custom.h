#pragma once
#include "ops/control/control.h"

namespace rlx {

/// A call that stands for a composite on operands of the given types: its body as the function, its derivatives as the rules.
Call call_with_rules(const OpDef& op, const Attrs& attrs, const std::vector<Type>& operands);

}  // namespace rlx
