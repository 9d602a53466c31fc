#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace rlx {

/// The tokens of one text or pair of texts: all vectors have one entry per token.
struct Encoding {
  std::vector<std::int32_t> ids;
  std::vector<std::int32_t> type_ids;                        // which text of a pair, as the post-processor numbers them
  std::vector<std::uint8_t> attention_mask;                  // 0 for padding
  std::vector<std::uint8_t> special_mask;                    // 1 for tokens that the post-processor or the padding added
  std::vector<std::pair<std::size_t, std::size_t>> offsets;  // [begin, end) in bytes of the token's own text; (0, 0) if added
  std::vector<std::string> tokens;                           // as the vocabulary writes them

  std::size_t size() const { return ids.size(); }
  void append(const Encoding& other);
  /// Keeps the tokens [begin, end).
  void keep(std::size_t begin, std::size_t end);
};

}  // namespace rlx
