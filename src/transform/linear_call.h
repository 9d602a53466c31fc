#pragma once
#include <functional>
#include <string>

#include "ir/op.h"

namespace rlx {

/// Gives the cotangents of the operands that have a tangent (in their order, null for zero) from those of the results and the residuals.
using Backward = std::function<Values(const Values& dy, const Values& residuals)>;

/// A linear map that is known by its transpose only: `linear_call` nodes occur in linear graphs, between differentiation and
/// transposition, and nowhere else. Gives the tangents of the results `y`, null where a result has no tangent.
Values linear_call(const Values& y, const Values& dx, const Values& residuals, const Backward& backward);

/// The same with a composite's own reverse rule.
Values linear_by_vjp(const OpDef& op, const Attrs& attrs, const Values& x, const Values& y, const Values& dx);

/// Tangents of results that cannot be pulled back: transposing them throws Error(message). So an op without derivative is refused only
/// where the gradient needs it, not where stop_gradient or an integer lies behind it.
Values linear_refusal(const Values& y, const Values& dx, const std::string& message);

}  // namespace rlx
