// As function_ranges_test.cpp, with forty times as many arguments.
#include "ops/function_sweep.h"

namespace rlx::test {
namespace {

TEST(FunctionRangesLong, OfF32) { expect_whole_range<float, double>(80); }
TEST(FunctionRangesLong, OfF64) { expect_whole_range<double, long double>(10); }

}  // namespace
}  // namespace rlx::test
