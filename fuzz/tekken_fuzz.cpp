#include <cstddef>
#include <cstdint>
#include <string_view>

#include "formats/json/json.h"
#include "rlx/error.h"
#include "text/tokenizer/files/tekken.h"

/// The input as a `tekken.json`.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const rlx::json::Value document = rlx::json::parse({reinterpret_cast<const char*>(data), size}, "fuzz");
    const rlx::Tokenizer tokenizer = rlx::read_tekken(rlx::JsonField(document, "fuzz"));
    tokenizer.decode(tokenizer.encode_ids("Hello, <s> world 12\xF0\x9F"), false);
  } catch (const rlx::Error&) {  // what a malformed file must give
  }
  return 0;
}
