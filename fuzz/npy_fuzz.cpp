#include <cstdint>

#include "formats/tensors/npy.h"

/// Whatever the reader accepts must be readable: every byte of the array is touched, and its last element.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static volatile unsigned sum = 0;
  try {
    const rlx::Array array = rlx::parse_npy(std::as_bytes(std::span(data, size)), "fuzz.npy");
    for (std::byte byte : array.bytes()) sum = sum + std::to_integer<unsigned>(byte);
    if (array.size() > 0) sum = sum + static_cast<unsigned>(array.get_complex(array.size() - 1).real() > 0);
  } catch (const rlx::Error&) {
    // A refusal is the right answer to most inputs.
  }
  return 0;
}
