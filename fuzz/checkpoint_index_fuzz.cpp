#include <cstdint>
#include <vector>

#include "formats/checkpoint.h"
#include "fuzz_folder.h"

namespace {

/// An index and the one shard that it may name, with tensors "w" and "b" of two f32.
const rlx::fuzz::FuzzFolder& folder_with_shard() {
  static const rlx::fuzz::FuzzFolder folder;
  static const bool written = [] {
    const std::vector<float> values{1, 2};
    const auto bytes = std::as_bytes(std::span(values));
    const std::vector<rlx::TensorView> tensors{{"w", rlx::f32, {2}, bytes}, {"b", rlx::f32, {2}, bytes}};
    rlx::write_safetensors(folder.path() / "shard.safetensors", tensors);
    return true;
  }();
  static_cast<void>(written);
  return folder;
}

}  // namespace

/// The input as an index. No index may reach beyond its folder: what is accepted names the shard and its tensors alone.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const rlx::fuzz::FuzzFolder& folder = folder_with_shard();
  folder.write("model.safetensors.index.json", {reinterpret_cast<const char*>(data), size});
  try {
    const rlx::Checkpoint checkpoint = rlx::Checkpoint::open(folder.path() / "model.safetensors.index.json");
    if (checkpoint.files().size() != 1 || checkpoint.names().size() != 2) __builtin_trap();
  } catch (const rlx::Error&) {
    // A refusal is the right answer to most inputs.
  }
  return 0;
}
