#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/names.h"
#include "models/tokenizer/regex.h"
#include "rlx/error.h"

/// The input up to the first zero as a pattern, the rest as a text: matches are in order and lie in the text.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), std::min<std::size_t>(size, 256));
  const std::size_t zero = std::min(input.find('\0'), input.size());
  const std::string_view text = input.substr(std::min(zero + 1, input.size()));
  if (!rlx::is_utf8(text)) return 0;
  try {
    const rlx::Regex regex(input.substr(0, zero), "fuzz");
    rlx::RegexSearch search(regex, text);
    std::size_t done = 0;
    while (const auto match = search.next()) {
      if (match->begin < done || match->end < match->begin || match->end > text.size()) std::abort();
      done = match->end;
    }
  } catch (const rlx::Error&) {  // a pattern that is malformed or not supported, or too many steps
  }
  return 0;
}
