// What a recorded run of a model, expected.safetensors, says of its inputs and outputs.
#include <cstdint>

#include "fuzz_folder.h"
#include "models/config/model_folder.h"
#include "models/families/decoder_family.h"
#include "models/run/recorded_run.h"
#include "models/weights/tensor_names.h"
#include "parts.h"
#include "zero_weights.h"

namespace {

constexpr std::string_view config = R"({"model_type": "llama", "vocab_size": 8, "hidden_size": 4, "intermediate_size": 4,
  "num_hidden_layers": 1, "num_attention_heads": 2, "max_position_embeddings": 8})";

/// A folder with a model whose weights are zeros.
const rlx::fuzz::FuzzFolder& folder_with_model() {
  static const rlx::fuzz::FuzzFolder folder;
  static const bool written = [] {
    folder.write("config.json", config);
    const auto& family = *rlx::DecoderFamily::find("llama");
    const rlx::DecoderConfig model = family.read(rlx::ModelFolder::open(folder.path()).config());
    rlx::NamedArrays weights;
    for (const auto& [param, zeros] : rlx::fuzz::zero_weights(model))
      weights.emplace(rlx::place_of(param, 1, family.weight_names(model)).tensors.front(), zeros);
    rlx::save_safetensors(folder.path() / "model.safetensors", weights);
    return true;
  }();
  static_cast<void>(written);
  return folder;
}

}  // namespace

/// The input is the recording, see safetensors_of.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const rlx::fuzz::FuzzFolder& folder = folder_with_model();
  folder.write("expected.safetensors", rlx::fuzz::safetensors_of({reinterpret_cast<const char*>(data), size}));
  try {
    rlx::RecordedRun::open(folder.path()).compare([](std::string_view) { return rlx::Array(rlx::f32, {1, 1, 8}); });
  } catch (const rlx::Error&) {
    // A refusal is the right answer to most inputs.
  }
  return 0;
}
