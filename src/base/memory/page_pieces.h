#pragma once
#include <cstddef>
#include <memory>
#include <span>

namespace rlx {

struct GivePieceBack {
  std::size_t bytes = 0;
  void operator()(std::byte* piece) const;
};

/// Part of a mapping of huge pages that it shares with other pieces.
using PagePiece = std::unique_ptr<std::byte, GivePieceBack>;

inline std::span<const std::byte> bytes_of(const PagePiece& piece) { return {piece.get(), piece.get_deleter().bytes}; }

/// Uninitialised memory that starts on a cache line, for what stays: pieces lie side by side, so that even the ends of small ones are in
/// huge pages, and they take no more memory than they hold. Large ones have a mapping of their own. What is given back can be used by
/// others of the system at once, but by other pieces only once the whole mapping is free. Null for no bytes. Throws std::bad_alloc. Any
/// thread may call.
PagePiece take_piece(std::size_t bytes);

}  // namespace rlx
