#pragma once
#include "kernel/kernel.h"

namespace rlx {

/// How far from 0 the arithmetic of an index gets at most, all that is added, multiplied and divided on its way included, at any values of
/// the symbols. A number of f64, which no product of sizes leaves.
double reach(const Index& index);
/// The same of all indices, loops and positions of the grid of a kernel.
double reach(const Kernel& kernel);

/// What reaches no farther fits 32 signed bits, with room for positions behind the last one.
inline constexpr std::int64_t most_narrow = (std::int64_t{1} << 31) - (std::int64_t{1} << 23);

inline bool is_narrow(const Index& index) { return reach(index) <= static_cast<double>(most_narrow); }
inline bool is_narrow(const Kernel& kernel) { return reach(kernel) <= static_cast<double>(most_narrow); }

}  // namespace rlx
