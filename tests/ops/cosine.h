#pragma once
#include <cmath>

#include "rlx/array.h"

namespace rlx::test {

/// The cosine of the angle between two arrays of one size, as vectors.
inline double cosine_of(const Array& a, const Array& b) {
  double ab = 0, aa = 0, bb = 0;
  for (std::int64_t i = 0; i < a.size(); ++i) {
    ab += a.get_double(i) * b.get_double(i);
    aa += a.get_double(i) * a.get_double(i);
    bb += b.get_double(i) * b.get_double(i);
  }
  return ab / std::sqrt(aa * bb);
}

}  // namespace rlx::test
