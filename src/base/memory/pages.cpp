#include "base/memory/pages.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

#include "base/checked.h"

namespace rlx {

namespace {
std::size_t small_page() { return static_cast<std::size_t>(sysconf(_SC_PAGESIZE)); }
}  // namespace

/// With the page in front.
void UnmapPages::operator()(std::byte* pages) const { munmap(pages - small_page(), small_page() + bytes); }

Pages map_pages(std::size_t bytes, Backing backing) {
  const std::size_t page = small_page();
  const std::size_t boundary = bytes >= huge_page_bytes ? huge_page_bytes : page;
  const auto room = checked_add(bytes, boundary);
  if (!room || bytes == 0) return {};
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | (backing == Backing::as_touched ? MAP_NORESERVE : 0);
  void* const mapped = mmap(nullptr, *room, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (mapped == MAP_FAILED) return {};
  auto* const begin = static_cast<std::byte*>(mapped);
  const std::size_t skipped = boundary - reinterpret_cast<std::uintptr_t>(begin) % boundary;
  if (skipped > page) munmap(begin, skipped - page);
  const std::size_t whole = (bytes + page - 1) / page * page;
  if (skipped + whole < *room) munmap(begin + skipped + whole, *room - skipped - whole);
  if (boundary == page) return {begin + skipped, {whole}};
#ifdef MADV_HUGEPAGE
  madvise(begin + skipped, whole, MADV_HUGEPAGE);
#endif
  return {begin + skipped, {whole}};
}

#ifdef MADV_HUGEPAGE
namespace {

/// For the huge pages inside; others are small as it is.
void advise(std::span<const std::byte> memory, int advice) {
  const std::size_t begin = reinterpret_cast<std::uintptr_t>(memory.data()), end = begin + memory.size();
  const std::size_t first = (begin + huge_page_bytes - 1) / huge_page_bytes * huge_page_bytes,
                    last = end / huge_page_bytes * huge_page_bytes;
  if (first < last) madvise(const_cast<std::byte*>(memory.data()) + (first - begin), last - first, advice);
}

}  // namespace

void use_small_pages(std::span<const std::byte> memory) { advise(memory, MADV_NOHUGEPAGE); }
void use_huge_pages(std::span<const std::byte> memory) { advise(memory, MADV_HUGEPAGE); }
#else
void use_small_pages(std::span<const std::byte>) {}
void use_huge_pages(std::span<const std::byte>) {}
#endif

}  // namespace rlx
