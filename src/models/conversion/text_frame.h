#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "formats/json/json_field.h"

namespace rlx {

/// The special tokens that a tokenizer puts around a text, and between two.
struct TextFrame {
  std::optional<std::int64_t> begin, end, between;
};

/// By the post-processor of a tokenizer.json; nothing where it puts nothing around texts. `losses` takes the tokens for which a frame has
/// no room.
TextFrame read_text_frame(const JsonField& root, std::vector<std::string>& losses);

}  // namespace rlx
