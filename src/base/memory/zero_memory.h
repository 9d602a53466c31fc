#pragma once
#include <cstddef>
#include <memory>

namespace rlx {

/// `bytes` of zeros, aligned to 64 bytes; null when the system has no memory left. Large blocks are pages of their own, see map_pages.
std::shared_ptr<std::byte> zero_memory(std::size_t bytes);

}  // namespace rlx
