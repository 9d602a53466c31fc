// Memory in pages: its boundary, its zeros, and sizes that cannot be had.
#include "base/memory/pages.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include "own_memory.h"

namespace rlx {
namespace {

using test::own_bytes_in_memory;

TEST(Pages, LargeOnesBeginOnAHugePageAndAreZero) {
  for (const Backing backing : {Backing::reserved, Backing::as_touched})
    for (const std::size_t bytes : {huge_page_bytes, huge_page_bytes + 1, 5 * huge_page_bytes - 4097}) {
      const Pages first = map_pages(bytes, backing), second = map_pages(bytes, backing);  // one of two is unlikely to be aligned by chance
      for (const Pages* pages : {&first, &second}) {
        ASSERT_TRUE(*pages);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(pages->get()) % huge_page_bytes, 0u);
        EXPECT_EQ(pages->get()[-1], std::byte{0});  // what others read as a size
        EXPECT_TRUE(std::all_of(pages->get(), pages->get() + bytes, [](std::byte b) { return b == std::byte{0}; }));
        std::fill_n(pages->get(), bytes, std::byte{1});
      }
    }
}

#ifdef MADV_HUGEPAGE
/// What the system keeps of the piece of memory that the address is in: its line of flags in smaps.
std::string flags_of(const void* address) {
  std::ifstream smaps("/proc/self/smaps");
  bool inside = false;
  for (std::string line; std::getline(smaps, line);) {
    std::uintptr_t begin = 0, end = 0;
    char dash = 0;
    if (std::istringstream range(line); range >> std::hex >> begin >> dash >> end && dash == '-')
      inside = begin <= reinterpret_cast<std::uintptr_t>(address) && reinterpret_cast<std::uintptr_t>(address) < end;
    else if (inside && line.starts_with("VmFlags:")) return line + " ";
  }
  return "";
}

TEST(Pages, TheSystemIsAskedForHugeOnes) {
  if (!std::ifstream("/sys/kernel/mm/transparent_hugepage/enabled")) GTEST_SKIP() << "the system has no huge pages";
  const Pages large = map_pages(4 * huge_page_bytes, Backing::reserved);
  const std::string flags = flags_of(large.get());
  if (flags.empty()) GTEST_SKIP() << "the system does not say what its pages are";
  EXPECT_NE(flags.find(" hg "), std::string::npos) << flags;
  use_small_pages({large.get(), 4 * huge_page_bytes});
  EXPECT_NE(flags_of(large.get()).find(" nh "), std::string::npos) << flags_of(large.get());
}
#endif

TEST(Pages, TakeNoMoreMemoryThanTheyHold) {
  if (own_bytes_in_memory() < 0) GTEST_SKIP() << "the system does not say what is in memory";
  const std::size_t bytes = huge_page_bytes + huge_page_bytes / 8;
  std::vector<Pages> pieces;
  const std::int64_t before = own_bytes_in_memory();
  for (int i = 0; i < 32; ++i) std::fill_n(pieces.emplace_back(map_pages(bytes, Backing::reserved)).get(), bytes, std::byte{1});
  EXPECT_LT(own_bytes_in_memory() - before, static_cast<std::int64_t>(32 * bytes + huge_page_bytes));
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
