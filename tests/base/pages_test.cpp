// Memory in pages: its boundary, its zeros, and sizes that cannot be had.
#include "base/pages.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>

namespace rlx {
namespace {

TEST(Pages, LargeOnesBeginOnAHugePageAndAreZero) {
  for (const Backing backing : {Backing::reserved, Backing::as_touched})
    for (const std::size_t bytes : {huge_page_bytes, huge_page_bytes + 1, 5 * huge_page_bytes - 4097}) {
      const Pages first = map_pages(bytes, backing), second = map_pages(bytes, backing);  // one of two is unlikely to be aligned by chance
      for (const Pages* pages : {&first, &second}) {
        ASSERT_TRUE(*pages);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(pages->get()) % huge_page_bytes, 0u);
        EXPECT_TRUE(std::all_of(pages->get(), pages->get() + bytes, [](std::byte b) { return b == std::byte{0}; }));
        std::fill_n(pages->get(), bytes, std::byte{1});
      }
    }
}

TEST(Pages, SmallOnesAreAsTheyCome) {
  const Pages pages = map_pages(100, Backing::reserved);
  ASSERT_TRUE(pages);
  EXPECT_EQ(pages.get()[99], std::byte{0});
}

TEST(Pages, WhatCannotBeHadIsNull) {
  EXPECT_FALSE(map_pages(0, Backing::reserved));
  EXPECT_FALSE(map_pages(std::numeric_limits<std::size_t>::max() - 5, Backing::as_touched));
  EXPECT_FALSE(map_pages(std::size_t{1} << 60, Backing::as_touched));
}

}  // namespace
}  // namespace rlx
