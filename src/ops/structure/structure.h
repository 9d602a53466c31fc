#pragma once
#include <utility>
#include <vector>

#include "ir/op.h"

namespace rlx {

// What the index maps of structure ops are made of.

/// Every element comes from the first operand, at `index`.
inline std::vector<Source> one_source(std::vector<Index> index) { return {{{}, 0, std::move(index), 0}}; }

/// A place counts where `index` is not negative.
inline Guard at_least_zero(Index index) { return {Guard::Kind::non_negative, std::move(index)}; }

}  // namespace rlx
