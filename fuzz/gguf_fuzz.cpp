#include <cstdint>
#include <vector>

#include "formats/gguf/gguf.h"
#include "formats/gguf/gguf_json.h"

/// Whatever the reader accepts must be readable: every value of the metadata, and every byte that a view claims to have.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static volatile unsigned sum = 0;
  try {
    const auto file = rlx::GgufFile::parse(std::as_bytes(std::span(data, size)), "fuzz.gguf");
    for (const rlx::GgufValue& value : file.metadata()) sum = sum + static_cast<unsigned>(rlx::to_json(value).size());
    for (const rlx::TensorView& tensor : file.tensors()) {
      for (std::byte byte : tensor.data) sum = sum + std::to_integer<unsigned>(byte);
      const rlx::Array array = file.array(tensor.name);
      if (array.size() > 0) sum = sum + static_cast<unsigned>(array.get_double(array.size() - 1) > 0);
    }
  } catch (const rlx::Error&) {
    // A refusal is the right answer to most inputs.
  }
  return 0;
}
