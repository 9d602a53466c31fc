#include <algorithm>

#include "base/cpu_count.h"
#include "models/weights/decoder_files.h"
#include "rlx/export.h"
#include "rlx/sentence_encoder.h"

namespace rlx {

SavedGraph model_graph(const std::filesystem::path& path, const ModelGraphOptions& options) {
  const LanguageModelFiles opened = open_language_model(path);
  const auto* const files = std::get_if<DecoderFiles>(&opened);
  if (!files || !files->config.causal) return SentenceEncoder::saved(path);
  const Graph graph = decoder_graph(files->config, {.capacity = options.context,
                                                    .chunk = std::min(options.chunk, options.context),
                                                    .cache = CacheType::f16,
                                                    .storage = stored_types(files->checkpoint, files->names)});
  return {graph, files->weights(graph, granted_cpus())};
}

}  // namespace rlx
