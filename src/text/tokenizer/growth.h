#pragma once
#include <cstddef>

#include "rlx/error.h"

namespace rlx {

/// How long the rules of a tokenizer's file may make a text of that many code points: no text that people write comes near, but rules that
/// multiply would fill the memory.
constexpr std::size_t most_after_rules(std::size_t length) { return 64 * length + (std::size_t{1} << 16); }

/// Throws Error where a text that a file's rules are making has grown longer than `most`.
inline void check_growth(std::size_t length, std::size_t most) {
  if (length > most) fail("tokenizer: the rules of its file make more than {} characters of a text", most);
}

}  // namespace rlx
