// Pages of sequences: who holds which, and what is given back.
#include "models/run/caches/page_pool.h"

#include <gtest/gtest.h>

#include "message.h"
#include "models/layers/decoder.h"

namespace rlx {
namespace {

TEST(PagePool, HoldsWhatIsTakenUntilItIsGivenBack) {
  PagePool pool(0, 8, 4);
  PagePool::List list;
  EXPECT_EQ(pool.missing(list, 129), 2);
  pool.take(list, 129);
  EXPECT_EQ(list.pages.size(), 2U);
  EXPECT_EQ(pool.missing(list, 256), 0);
  EXPECT_EQ(pool.missing(list, 257), 1);
  EXPECT_EQ(pool.free_pages(), 2);
  EXPECT_EQ(test::error_of([&] { pool.take(list, 600); }), "the caches of the batch are full: a page of 128 tokens is needed, 0 are free");
  pool.keep(list, 128);
  EXPECT_EQ(pool.free_pages(), 3);
  pool.pass(list, 128);  // without a window everything is seen
  EXPECT_EQ(list.first, 0);
  EXPECT_EQ(pool.free_pages(), 3);
}

TEST(PagePool, GivesBackWhatNoNextTokenSees) {
  PagePool pool(10, 2, 8);
  PagePool::List list;
  EXPECT_EQ(pool.missing(list, 5000), 2);
  pool.take(list, 256);
  pool.pass(list, 136);  // the next sees 127..136
  EXPECT_EQ(list.first, 0);
  EXPECT_TRUE(pool.reaches(list, 20));
  pool.pass(list, 137);
  EXPECT_EQ(list.first, 1);
  EXPECT_EQ(list.pages.size(), 1U);
  EXPECT_EQ(pool.free_pages(), 7);
  EXPECT_TRUE(pool.reaches(list, 137));
  EXPECT_FALSE(pool.reaches(list, 136));
  pool.keep(list, 0);
  EXPECT_EQ(list.first, 0);
  EXPECT_EQ(pool.free_pages(), 8);
}

TEST(PagePool, SharedPagesAreFreeWhenNobodyHasThem) {
  PagePool pool(10, 4, 8);
  PagePool::List first;
  pool.take(first, 300);
  PagePool::List second = pool.share(first, 300);
  EXPECT_EQ(second.pages.size(), 2U);  // the third is not full
  EXPECT_TRUE(pool.is_shared(first, 255));
  EXPECT_FALSE(pool.is_shared(first, 256));
  pool.pass(first, 300);
  EXPECT_EQ(first.first, 2);
  EXPECT_FALSE(pool.is_shared(second, 0));
  EXPECT_EQ(pool.free_pages(), 5);
  pool.take(second, 300);
  EXPECT_NE(second.pages[2], first.pages[0]);
  pool.keep(second, 0);
  EXPECT_EQ(pool.free_pages(), 7);
}

}  // namespace
}  // namespace rlx
