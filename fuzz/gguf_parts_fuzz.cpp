#include <algorithm>
#include <cstdint>
#include <string_view>

#include "formats/gguf/gguf.h"
#include "fuzz_folder.h"
#include "rlx/error.h"

/// The input is a GGUF file of two parts; the second begins where the magic stands again. Every byte of what is accepted can be read.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const rlx::fuzz::FuzzFolder folder;
  static volatile unsigned sum = 0;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::size_t second = std::min(text.find("GGUF", 1), size);
  folder.write("m-00001-of-00002.gguf", text.substr(0, second));
  folder.write("m-00002-of-00002.gguf", text.substr(second));
  try {
    const auto file = rlx::GgufFile::open(folder.path() / "m-00002-of-00002.gguf");
    for (const rlx::TensorView& tensor : file.tensors())
      for (std::byte byte : tensor.data) sum = sum + std::to_integer<unsigned>(byte);
  } catch (const rlx::Error&) {
    // A refusal is the right answer to most inputs.
  }
  return 0;
}
