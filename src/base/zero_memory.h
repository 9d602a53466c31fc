#pragma once
#include <cstddef>
#include <memory>

namespace rlx {

/// `bytes` of zeros, aligned to 64 bytes; null when the system has no memory left. Large blocks are pages of their own, backed where they
/// are first touched, by huge pages where the system allows them: faults on small ones cost ten times what a kernel takes to write them.
std::shared_ptr<std::byte> zero_memory(std::size_t bytes);

}  // namespace rlx
