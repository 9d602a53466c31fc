#include "base/memory/zero_memory.h"

#include <cstdlib>
#include <limits>

#include "base/memory/pages.h"

namespace rlx {

std::shared_ptr<std::byte> zero_memory(std::size_t bytes) {
  constexpr std::size_t alignment = 64;
  if (bytes > std::numeric_limits<std::size_t>::max() / 2) return nullptr;
  if (bytes >= huge_page_bytes) return map_pages(bytes, Backing::reserved);
  std::size_t room = bytes + 2 * alignment;
  void* block = std::calloc(room, 1);
  if (!block) return nullptr;
  const std::shared_ptr<void> owner(block, &std::free);
  return {owner, static_cast<std::byte*>(std::align(alignment, bytes, block, room))};
}

}  // namespace rlx
