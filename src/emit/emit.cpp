#include "emit/emit.h"

#include <xxhash.h>

namespace rlx {

KernelText named_by_hash(std::string text, std::string_view prefix, std::vector<GridLoop> grid) {
  const XXH128_hash_t hash = XXH3_128bits(text.data(), text.size());
  const std::string name = fmt::format("{}{:016x}{:016x}", prefix, hash.high64, hash.low64);
  for (std::size_t at = text.find(name_marker); at != std::string::npos; at = text.find(name_marker, at))
    text.replace(at, name_marker.size(), name);
  return {name, std::move(text), std::move(grid)};
}

}  // namespace rlx
