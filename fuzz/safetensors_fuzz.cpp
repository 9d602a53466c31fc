#include <cstdint>

#include "formats/tensors/safetensors.h"

/// Whatever the reader accepts must be readable: every byte that a view claims to have is touched.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static volatile unsigned sum = 0;
  try {
    const auto file = rlx::SafetensorsFile::parse(std::as_bytes(std::span(data, size)), "fuzz.safetensors");
    for (const rlx::TensorView& tensor : file.tensors()) {
      for (std::byte byte : tensor.data) sum = sum + std::to_integer<unsigned>(byte);
      const rlx::Array array = file.array(tensor.name);
      if (array.size() > 0) sum = sum + static_cast<unsigned>(array.get_complex(array.size() - 1).real() > 0);
    }
  } catch (const rlx::Error&) {
    // A refusal is the right answer to most inputs.
  }
  return 0;
}
