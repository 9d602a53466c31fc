#include <cstdint>
#include <vector>

#include "fuzz_folder.h"
#include "models/weights/quantized/folder_weights.h"
#include "parts.h"
#include "rlx/error.h"

/// The input is a config.json, a zero byte and a safetensors file, see safetensors_of. Of what is accepted, and is small, every row can be
/// made.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const rlx::fuzz::FuzzFolder folder;
  std::string_view text(reinterpret_cast<const char*>(data), size);
  folder.write("config.json", rlx::fuzz::take_part(text));
  folder.write("model.safetensors", rlx::fuzz::safetensors_of(text));
  try {
    const rlx::Checkpoint checkpoint = rlx::open_weights(folder.path());
    std::vector<std::byte> rows;
    for (const rlx::Checkpoint::File& file : checkpoint.files())
      for (const rlx::TensorView& tensor : file.tensors)
        if (tensor.make_rows && rlx::byte_count(tensor) < 1 << 20) rlx::row_bytes(tensor, 0, rlx::row_count(tensor), rows);
  } catch (const rlx::Error&) {
    // A refusal is the right answer to most inputs.
  }
  return 0;
}
