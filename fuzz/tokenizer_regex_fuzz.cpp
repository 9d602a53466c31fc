#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/names.h"
#include "parts.h"
#include "rlx/error.h"
#include "text/regex/regex.h"

/// The input up to the first zero as a pattern, the rest as a text: matches are in order and lie in the text.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), std::min<std::size_t>(size, 256));
  const std::string_view pattern = rlx::fuzz::take_part(text);
  if (!rlx::is_utf8(text)) return 0;
  try {
    const rlx::Regex regex(pattern, "fuzz");
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
