// Models for browsers: their graph as a program, with what a page needs to know of them.
#include <algorithm>

#include "base/cpu_count.h"
#include "formats/json/json_field.h"
#include "formats/web/web_folder.h"
#include "models/config/sentence_config.h"
#include "models/layers/decoder_cache.h"
#include "models/layers/t5.h"
#include "models/run/caches/cached_t5.h"
#include "models/run/model_state.h"
#include "models/weights/decoder_files.h"
#include "passes/exact_activations.h"
#include "rlx/export.h"
#include "rlx/sentence_encoder.h"
#include "text/tokenizer/files/tokenizer_files.h"

namespace rlx {
namespace {

constexpr std::int64_t chunk = scan_tokens;  // most tokens of a prompt in one run: recurrent layers read them as one chunk

/// The tokenizer, and the script of its word model.
std::map<std::string, std::string> tokenizer_files(const std::filesystem::path& model, const GgufFile* gguf) {
  constexpr const char* name = "tokenizer.json";
  const std::filesystem::path file = gguf ? model : model / name;
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error)) fail("{}: it is missing, and a page reads texts by it", file.string());
  const json::Value tokenizer = gguf ? json::parse(tokenizer_json(*gguf), name) : json::read_file(file);
  const auto kind = JsonField(tokenizer, file.string()).at("model").find("type");
  const std::string_view words = web_words(kind ? kind->as_string() : "BPE");
  if (words.empty()) kind->refuse("{} (a page has BPE, Unigram and WordPiece)", kind->as_string());
  return {{name, json::line(tokenizer) + "\n"}, {"words.js", std::string(words)}};
}

void export_encoder(const std::filesystem::path& out, const std::filesystem::path& model, const DecoderConfig& encoder,
                    const GgufFile* gguf) {
  const SentenceModelConfig config = gguf ? SentenceModelConfig::read(*gguf, encoder) : SentenceModelConfig::read(model, encoder);
  const json::Value page = {{"kind", "sentences"}, {"max_length", config.max_length}, {"prompt", config.prompt}};
  SavedGraph saved = SentenceEncoder::saved(model);
  saved.graph = with_exact_activations(saved.graph);  // a GPU gains nothing by rounding them to 8 bits
  write_web_folder(out, saved, page, tokenizer_files(model, gguf));
}

void export_decoder(const std::filesystem::path& out, const DecoderFiles& files, const WebModelOptions& options,
                    const std::filesystem::path& model) {
  const std::int64_t most = files.config.max_positions, context = options.context > 0 ? options.context : std::min(most, usual_web_context);
  if (context < 1 || context > most) fail("web: a context of {} tokens (allowed: 1..{}; 0: the usual one)", options.context, most);
  const DecoderGraphOptions its{
      .capacity = context, .chunk = std::min(chunk, context), .rope_tables = true, .storage = stored_types(files.checkpoint, files.names)};
  const Graph graph = with_exact_activations(decoder_graph(files.config, its));
  json::Value page = {{"kind", "text"},
                      {"context", context},
                      {"short_length", files.config.length_of_short_factors()},
                      {"end_tokens", files.end_tokens},
                      {"rings", json::Value::array()}};
  for (const std::int64_t window : windows_in_pages(files.config, its))
    page["rings"].push_back(
        {{"name", ring_name(window)}, {"window", window}, {"pages", window_pages(its, window)}, {"page_tokens", page_tokens}});
  write_web_folder(out, {graph, files.weights(graph, granted_cpus())}, page, tokenizer_files(model, files.checkpoint.gguf()));
}

void export_answering(const std::filesystem::path& out, const T5Files& files, const WebModelOptions& options,
                      const std::filesystem::path& model) {
  const std::int64_t context = options.context > 0 ? options.context : std::min(files.config.n_positions, usual_web_context);
  const WeightStorage storage = stored_types(files.checkpoint, files.names);
  const NamedArrays weights = t5_weights(files, storage, granted_cpus());
  const auto part = [&](const Graph& graph) {
    SavedGraph saved{with_exact_activations(graph), {}};
    for (const auto& [input, value] : graph.inputs())
      if (input.kind == InputKind::param) saved.weights.emplace(input.name, weights.at(input.name));
    return saved;
  };
  const json::Value page = {
      {"kind", "answers"}, {"context", context}, {"start_token", files.config.decoder_start_token_id}, {"end_tokens", files.end_tokens}};
  write_web_folder(out, part(t5_decoder_graph(files.config, {.length = context, .capacity = context}, storage)), page,
                   tokenizer_files(model, files.checkpoint.gguf()), {{"encoder", part(t5_encoder_graph(files.config, context, storage))}});
}

}  // namespace

void export_web_model(const std::filesystem::path& out, const std::filesystem::path& model, const WebModelOptions& options) {
  const LanguageModelFiles files = open_language_model(model);
  if (options.context < 0) fail("web: a context of {} tokens (allowed: at least 1; 0: the usual one)", options.context);
  const auto* const decoder = std::get_if<DecoderFiles>(&files);
  if (!decoder) export_answering(out, std::get<T5Files>(files), options, model);
  else if (decoder->config.causal) export_decoder(out, *decoder, options, model);
  else export_encoder(out, model, decoder->config, decoder->checkpoint.gguf());
}

}  // namespace rlx
