#pragma once
#include <filesystem>

namespace rlx {

/// Low-rank changes of a model's matrices that were trained apart from it (LoRA, Hu et al. 2021): a folder as PEFT writes it
/// (adapter_config.json, adapter_model.safetensors) or a GGUF file. The matrices stay as they are stored.
struct Adapter {
  std::filesystem::path path;
  double scale = 1;  // of all that it adds; negative: what it learned is taken away
};

}  // namespace rlx
