#pragma once
#include <cstddef>
#include <memory>

namespace rlx {

/// Results below this size are made faster than a block is looked for.
inline constexpr std::size_t least_result_bytes = std::size_t{256} << 10;

/// Memory for a result, with what an earlier one left in it: fresh pages take longer to get than most programs to fill them. When nobody
/// holds it any more, a few blocks are kept for the next ones. Throws Error where there is none. Any number of threads may ask.
std::shared_ptr<std::byte> result_memory(std::size_t bytes);

}  // namespace rlx
