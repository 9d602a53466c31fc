#pragma once
#include <cstdint>
#include <string>

namespace rlx {

/// "1.5 GiB"
std::string bytes_text(std::int64_t bytes);

}  // namespace rlx
