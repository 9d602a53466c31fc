#include <cstdint>
#include <span>
#include <string_view>

#include "formats/gguf/gguf.h"
#include "fuzz_folder.h"
#include "models/weights/adapter_file.h"
#include "parts.h"
#include "rlx/error.h"

/// The input is an adapter: a GGUF file, or adapter_config.json, a zero byte and adapter_model.safetensors, see safetensors_of. What is
/// accepted has factors that agree.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const rlx::fuzz::FuzzFolder folder;
  std::string_view text(reinterpret_cast<const char*>(data), size);
  const bool gguf = rlx::looks_like_gguf(std::as_bytes(std::span(data, size)));
  if (gguf) {
    folder.write("adapter.gguf", text);
  } else {
    folder.write("adapter_config.json", rlx::fuzz::take_part(text));
    folder.write("adapter_model.safetensors", rlx::fuzz::safetensors_of(text));
  }
  try {
    const auto file = rlx::AdapterFile::open(gguf ? folder.path() / "adapter.gguf" : folder.path());
    if (file.changes.empty()) __builtin_trap();
    for (const auto& [tensor, change] : file.changes) {
      const auto& a = change.a.shape();
      if (change.rank() != a[a.size() - (change.embedding ? 1 : 2)]) __builtin_trap();
    }
  } catch (const rlx::Error&) {
    // A refusal is the right answer to most inputs.
  }
  return 0;
}
