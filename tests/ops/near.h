#pragma once
#include <gtest/gtest.h>

#include <limits>

#include "ops/values.h"

namespace rlx::test {

inline constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// NaN where NaN is wanted, infinities and zeros exactly, the others within `relative` of themselves.
inline void expect_near(const std::vector<double>& seen, const std::vector<double>& wanted, double relative) {
  ASSERT_EQ(seen.size(), wanted.size());
  for (std::size_t i = 0; i < seen.size(); ++i) {
    if (std::isnan(wanted[i])) EXPECT_TRUE(std::isnan(seen[i])) << i;
    else if (std::isinf(wanted[i])) EXPECT_EQ(seen[i], wanted[i]) << i;
    else EXPECT_NEAR(seen[i], wanted[i], relative * std::abs(wanted[i]) + (wanted[i] == 0 ? 0 : 1e-300)) << i;
  }
}

/// All within `tolerance`.
inline void expect_close(const std::vector<double>& seen, const std::vector<double>& wanted, double tolerance) {
  ASSERT_EQ(seen.size(), wanted.size());
  for (std::size_t i = 0; i < seen.size(); ++i) EXPECT_NEAR(seen[i], wanted[i], tolerance) << i;
}

}  // namespace rlx::test
