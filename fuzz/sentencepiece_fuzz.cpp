#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "rlx/error.h"
#include "text/tokenizer/files/sentencepiece.h"

/// The input as a `tokenizer.model`; what can be read must tokenize and give back ids that decode.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const auto bytes = std::as_bytes(std::span(data, size));
    const rlx::Tokenizer tokenizer = rlx::sentencepiece_tokenizer(rlx::read_sentencepiece(bytes, "fuzz"), "fuzz");
    const std::vector<std::int32_t> ids = tokenizer.encode_ids("  He\xCC\x81llo, <s> \xE2\x96\x81 world 12\xF0\x9F");
    tokenizer.decode(ids, false);
  } catch (const rlx::Error&) {  // what a malformed file must give
  }
  return 0;
}
