#include "ir/guards.h"

#include <algorithm>

namespace rlx {

bool always_holds(const Guard& guard) {
  return guard.kind == Guard::Kind::non_negative ? guard.index.known_non_negative() : guard.index == Index(0);
}

bool never_holds(const Guard& guard) {
  if (guard.kind == Guard::Kind::non_negative) return guard.index.known_below(0);
  return guard.index.is_constant() && guard.index.constant().is_static() && guard.index.constant().value() != 0;
}

bool never_hold(const std::vector<Guard>& guards) { return std::ranges::any_of(guards, never_holds); }

}  // namespace rlx
