#include <cstdint>

#include "fuzz_folder.h"
#include "ir/verifier.h"
#include "models/config/model_folder.h"
#include "models/config/sentence_config.h"
#include "models/families/decoder_family.h"
#include "models/run/sentence_graph.h"
#include "models/weights/decoder_files.h"
#include "parts.h"

/// The input is the files of an encoder's folder, with zero bytes between. What is accepted, and is small, must give a sound graph.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const rlx::fuzz::FuzzFolder folder;
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  for (const char* name : {"config.json", "modules.json", "1_Pooling/config.json", "sentence_bert_config.json", "tokenizer_config.json",
                           "config_sentence_transformers.json"})
    folder.write(name, rlx::fuzz::take_part(rest));
  try {
    const auto model = rlx::ModelFolder::open(folder.path());
    const auto encoder = rlx::family_of(model).read(model.config());
    if (encoder.causal) return 0;
    const auto config = rlx::SentenceModelConfig::read(folder.path(), encoder);
    if (config.width() < 1 || config.max_length < 1) __builtin_trap();
    if (encoder.layers.size() <= 4) rlx::verify(rlx::sentence_graph(config, 8), "sentence_graph");
  } catch (const rlx::Error&) {
    // A refusal is the right answer to most inputs.
  }
  return 0;
}
