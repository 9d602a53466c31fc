// Folders of language models, encoders and T5: what config.json and generation_config.json say.
#include <cstdint>
#include <vector>

#include "fuzz_folder.h"
#include "ir/verifier.h"
#include "models/config/model_folder.h"
#include "models/config/recommended_sampling.h"
#include "models/families/export/folder_config.h"
#include "models/families/export/gguf_config.h"
#include "models/families/gguf/gguf_decoder.h"
#include "models/layers/t5.h"
#include "models/weights/decoder_files.h"
#include "models/weights/t5_files.h"
#include "parts.h"

namespace {

constexpr std::size_t most_layers = 4;  // of a graph that is worth its time

/// A folder with some weights: they are not looked at.
const rlx::fuzz::FuzzFolder& folder_with_weights() {
  static const rlx::fuzz::FuzzFolder folder;
  static const bool written = [] {
    const std::vector<float> values{1};
    const std::vector<rlx::TensorView> tensors{{"w", rlx::f32, {1}, std::as_bytes(std::span(values))}};
    rlx::write_safetensors(folder.path() / "model.safetensors", tensors);
    return true;
  }();
  static_cast<void>(written);
  return folder;
}

void read_t5(const rlx::ModelFolder& folder) {
  const rlx::T5Config config = rlx::T5Files::open(folder.path()).config;
  if (config.num_layers + config.num_decoder_layers <= static_cast<std::int64_t>(most_layers))
    rlx::verify(rlx::t5_graph(config, {.batch = 2, .length = 8, .decoder_length = 8}), "t5_graph");
  rlx::GgufMetadata metadata;
  rlx::describe_t5(folder, config, metadata);
}

void read_decoder(const rlx::ModelFolder& folder) {
  const auto files = rlx::DecoderFiles::open(folder.path());
  if (files.config.layers.size() > most_layers) return;
  if (files.config.causal) rlx::verify(rlx::decoder_graph(files.config, {.capacity = 16, .chunk = 4}), "decoder_graph");
  rlx::recommended_sampling(folder.path(), files.checkpoint);
  const std::string_view architecture = rlx::gguf_architecture(folder.model_type());
  rlx::GgufMetadata metadata;
  rlx::describe_model(rlx::gguf_form(files.config, architecture), architecture, metadata);
}

}  // namespace

/// The input is the two files, with a zero byte between. What is accepted, and is small, must give a sound graph.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const rlx::fuzz::FuzzFolder& files = folder_with_weights();
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  files.write("config.json", rlx::fuzz::take_part(rest));
  files.write("generation_config.json", rest);
  try {
    const auto folder = rlx::ModelFolder::open(files.path());
    if (folder.model_type() == "t5") read_t5(folder);
    else read_decoder(folder);
  } catch (const rlx::Error&) {
    // A refusal is the right answer to most inputs.
  }
  return 0;
}
