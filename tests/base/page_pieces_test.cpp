// Pieces of huge pages: their boundaries, that they do not overlap, and what they leave behind.
#include "base/memory/page_pieces.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <new>
#include <thread>
#include <vector>

namespace rlx {
namespace {

TEST(PagePieces, StartOnLinesAndKeepWhatIsWritten) {
  std::vector<PagePiece> pieces;
  const std::size_t sizes[] = {1, 64, 100, 300 << 10, 5 << 20, 63 << 20, 100 << 20};
  for (const std::size_t bytes : sizes) {
    PagePiece& piece = pieces.emplace_back(take_piece(bytes));
    ASSERT_TRUE(piece);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(piece.get()) % 64, 0u);
    std::memset(piece.get(), static_cast<int>(pieces.size()), bytes);
  }
  for (std::size_t i = 0; i < pieces.size(); ++i)
    EXPECT_TRUE(std::all_of(pieces[i].get(), pieces[i].get() + sizes[i], [&](std::byte b) { return b == static_cast<std::byte>(i + 1); }));
}

TEST(PagePieces, ThatAreGivenBackLeaveTheirNeighboursAlone) {
  constexpr std::size_t bytes = 1 << 20;
  PagePiece first = take_piece(bytes), second = take_piece(bytes), third = take_piece(bytes);
  for (PagePiece* piece : {&first, &second, &third}) std::memset(piece->get(), 7, bytes);
  second.reset();
  for (PagePiece* piece : {&first, &third})
    EXPECT_TRUE(std::all_of(piece->get(), piece->get() + bytes, [](std::byte b) { return b == std::byte{7}; }));
}

TEST(PagePieces, ManyOfAFewMegabytesLieSideBySide) {
  constexpr std::size_t bytes = 5 << 19;
  const PagePiece first = take_piece(bytes), second = take_piece(bytes);
  const auto apart = second.get() - first.get();
  EXPECT_LT(std::abs(apart), std::int64_t{64} << 20);
  EXPECT_GE(std::abs(apart), std::int64_t{bytes});
}

TEST(PagePieces, AreTakenByManyThreads) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([t] {
      for (int i = 0; i < 200; ++i) {
        const std::size_t bytes = static_cast<std::size_t>(1 + (i * 7919 + t * 104729) % (3 << 20));
        const PagePiece piece = take_piece(bytes);
        ASSERT_TRUE(piece);
        piece.get()[0] = piece.get()[bytes - 1] = static_cast<std::byte>(t);
        ASSERT_EQ(piece.get()[bytes - 1], static_cast<std::byte>(t));
      }
    });
  for (std::thread& thread : threads) thread.join();
}

TEST(PagePieces, ThatCannotBeHadAreAnError) {
  EXPECT_FALSE(take_piece(0));
  EXPECT_THROW(take_piece(std::numeric_limits<std::size_t>::max() - 5), std::bad_alloc);
  EXPECT_THROW(take_piece(std::size_t{1} << 60), std::bad_alloc);
}

}  // namespace
}  // namespace rlx
