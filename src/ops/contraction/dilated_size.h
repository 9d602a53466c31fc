#pragma once
#include <string_view>

#include "rlx/dim.h"

namespace rlx {

/// The size of n elements with d - 1 holes between neighbours.
inline Dim dilated(const Dim& n, std::int64_t d) { return n == Dim(0) ? Dim(0) : (n - 1) * d + 1; }

/// How many strides of `b` there are in `a`: floor(a / b), also for a symbolic `a` whose remainder is a number. Throws Error, which names
/// `what`, where a stride is on another symbolic size.
Dim strides_in(std::string_view what, const Dim& a, std::int64_t b);

}  // namespace rlx
