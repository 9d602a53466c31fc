#include "lowering/sizes.h"

#include <gtest/gtest.h>

#include "rlx/error.h"

namespace {

using rlx::Dim;
using rlx::Size;
using rlx::SizeTable;

TEST(SizeTable, KeepsEachSizeOnceAndNumbersNotAtAll) {
  SizeTable table({"B", "S"});
  const Dim b = Dim::symbol("B", 8), s = Dim::symbol("S", 100);
  const Size number = table(Dim(7)), polynomial = table(b * s * 3 - s + 2), same = table(s * b * 3 + 2 - s), symbol = table(s);
  const std::vector<std::int64_t> values = table.values({5, 11});
  EXPECT_EQ(values.size(), 2u);
  EXPECT_EQ(number(nullptr), 7);
  EXPECT_EQ(polynomial(values.data()), 5 * 11 * 3 - 11 + 2);
  EXPECT_EQ(same(values.data()), polynomial(values.data()));
  EXPECT_EQ(symbol(values.data()), 11);
}

TEST(SizeTable, RefusesUnknownSymbolsAndSizesBeyond64Bits) {
  SizeTable table({"B"});
  EXPECT_THROW(table(Dim::symbol("other", 2)), rlx::InternalError);
  const Dim b = Dim::symbol("B", 8);
  const Size large = table(b * b * (std::int64_t{1} << 57));
  EXPECT_EQ(large(table.values({7}).data()), 49 * (std::int64_t{1} << 57));
  EXPECT_THROW(table.values({8}), rlx::Error);
}

}  // namespace
