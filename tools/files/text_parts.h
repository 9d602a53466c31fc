#pragma once
#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace rlx::command {

/// Texts cut into parts whose results are printed when they are there: one batch first, so that something is there soon, then twice as many
/// texts each time up to 16 batches, which are enough for texts of like length to meet in one.
inline std::vector<std::span<const std::string>> parts_of(std::span<const std::string> texts, std::int64_t batch_size) {
  std::vector<std::span<const std::string>> parts;
  for (auto size = static_cast<std::size_t>(batch_size), most = 16 * size; !texts.empty(); size = std::min(2 * size, most)) {
    parts.push_back(texts.first(std::min(size, texts.size())));
    texts = texts.subspan(parts.back().size());
  }
  return parts;
}

}  // namespace rlx::command
