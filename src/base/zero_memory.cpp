#include "base/zero_memory.h"

#include <sys/mman.h>

#include <cstdlib>
#include <limits>

namespace rlx {

std::shared_ptr<std::byte> zero_memory(std::size_t bytes) {
  constexpr std::size_t alignment = 64, large = std::size_t{1} << 21;
  if (bytes > std::numeric_limits<std::size_t>::max() / 2) return nullptr;
  if (bytes >= large) {
    void* pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) return nullptr;
    madvise(pages, bytes, MADV_HUGEPAGE);  // a wish: refusal costs speed only
    return {static_cast<std::byte*>(pages), [bytes](std::byte* p) { munmap(p, bytes); }};
  }
  std::size_t room = bytes + 2 * alignment;
  void* block = std::calloc(room, 1);
  if (!block) return nullptr;
  const std::shared_ptr<void> owner(block, &std::free);
  return {owner, static_cast<std::byte*>(std::align(alignment, bytes, block, room))};
}

}  // namespace rlx
