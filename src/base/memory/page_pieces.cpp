#include "base/memory/page_pieces.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <new>
#include <vector>

#include "base/memory/pages.h"

namespace rlx {
namespace {

constexpr std::size_t mapping_bytes = std::size_t{64} << 20, line = 64;

std::size_t round_up(std::size_t bytes, std::size_t to) { return (bytes + to - 1) / to * to; }

struct SharedMapping {
  Pages pages;
  std::size_t bytes = 0, used = 0, pieces = 0;

  bool holds(const std::byte* piece) const { return piece >= pages.get() && piece < pages.get() + bytes; }
  bool has_room(std::size_t more) const { return more <= bytes - used; }
  std::byte* take(std::size_t more) {
    std::byte* const piece = pages.get() + used;
    used += more, ++pieces;
    return piece;
  }
};

/// Gives the system back the pages that lie in a piece alone.
void drop_pages(std::byte* piece, std::size_t bytes) {
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE)), at = reinterpret_cast<std::uintptr_t>(piece);
  const std::uintptr_t begin = round_up(at, page), end = (at + bytes) / page * page;
  if (begin < end) madvise(piece + (begin - at), end - begin, MADV_DONTNEED);
}

class SharedMappings {
 public:
  std::byte* take(std::size_t bytes) {
    const std::scoped_lock lock(mutex_);
    auto mapping = std::ranges::find_if(all_, [&](const SharedMapping& m) { return m.has_room(bytes); });
    if (mapping == all_.end()) {
      const std::size_t size = std::max(bytes, mapping_bytes);
      Pages pages = map_pages(size, Backing::reserved);
      if (!pages) throw std::bad_alloc();
      mapping = all_.insert(all_.end(), {std::move(pages), size});
    }
    return mapping->take(bytes);
  }

  void give_back(std::byte* piece, std::size_t bytes) {
    const std::scoped_lock lock(mutex_);
    const auto mapping = std::ranges::find_if(all_, [&](const SharedMapping& m) { return m.holds(piece); });
    if (--mapping->pieces == 0) all_.erase(mapping);
    else drop_pages(piece, bytes);
  }

 private:
  std::mutex mutex_;
  std::vector<SharedMapping> all_;
};

/// Never destroyed: pieces may be given back by other objects that live as long as the process.
SharedMappings& shared_mappings() {
  static auto* const all = new SharedMappings;
  return *all;
}

}  // namespace

void GivePieceBack::operator()(std::byte* piece) const { shared_mappings().give_back(piece, bytes); }

PagePiece take_piece(std::size_t bytes) {
  if (bytes == 0) return {};
  if (bytes > SIZE_MAX - line) throw std::bad_alloc();
  const std::size_t whole = round_up(bytes, line);
  return {shared_mappings().take(whole), {whole}};
}

}  // namespace rlx
