#include "rlx/mask_filler.h"

#include <algorithm>
#include <iterator>

#include <fmt/ranges.h>

#include "models/config/model_folder.h"
#include "models/config/sentence_config.h"
#include "models/layers/decoder_step.h"
#include "models/run/batches/text_batches.h"
#include "models/weights/decoder_files.h"
#include "rlx/ops.h"
#include "text/tokenizer/files/open_tokenizer.h"

namespace rlx {

struct MaskFiller::State {
  DecoderConfig encoder;
  Tokenizer tokenizer;
  Executable executable;
  std::string mask;
  std::int32_t mask_id;
  MaskFillerOptions options;

  Encoding tokens(const std::string& text, std::size_t number) const;
  std::vector<std::vector<std::vector<MaskWord>>> fill(std::span<const Encoding> batch) const;
};

namespace {

/// What the folder's own files call the mask, else one of the two usual names.
std::string mask_of(const std::filesystem::path& folder, const Tokenizer& tokenizer) {
  const std::filesystem::path file = folder / "tokenizer_config.json";
  std::vector<std::string> names{"[MASK]", "<mask>"};
  if (std::filesystem::exists(file)) {
    const ConfigFile config = ConfigFile::open(file);
    if (auto token = config.root().find("mask_token")) {
      if (token->value().is_object()) token = token->at("content");
      names = {token->as_string()};
    }
  }
  for (const std::string& name : names)
    if (tokenizer.token_to_id(name)) return name;
  fail("{}: the tokenizer has no token for a mask (looked for {})", folder.string(), fmt::join(names, ", "));
}

/// inputs of the encoder, mask_rows (N): of each mask where its token lies among those of all texts, (B * S)
///   -> probabilities (N, words), tokens (N, words)
Graph filler_graph(const DecoderFiles& files, const MaskFillerOptions& options, std::int64_t length) {
  Graph graph("mask_filler");
  Flow flow(graph, f32, stored_types(files.checkpoint, files.names));
  const EncodedText text = encode_texts(flow, files.config, options.batch_size, length);
  Value states = text.states.back();
  Value rows = graph.input("mask_rows", {Dim::symbol("N", options.batch_size * length)}, i32);
  states = take(reshape(states, {states.dim(0) * states.dim(1), files.config.hidden_size}), rows, 0);
  Values best = top_k(softmax(decoder_logits(flow, files.config, text.table, states)), options.words, -1);
  graph.output("probabilities", best[0]);
  graph.output("tokens", best[1]);
  return graph;
}

void check_words(const MaskFillerOptions& options, const DecoderConfig& config) {
  if (options.words < 1 || options.words > config.vocab_size)
    fail("{} words of a mask (allowed: 1..{}, the size of the vocabulary)", options.words, config.vocab_size);
}

}  // namespace

Encoding MaskFiller::State::tokens(const std::string& text, std::size_t number) const {
  Encoding encoding = tokenizer.encode(text);
  check_tokens(encoder, encoding);
  if (std::ranges::find(encoding.ids, mask_id) == encoding.ids.end())
    fail("text {} has no {}{}", number, mask,
         text.find(mask) == std::string::npos ? "" : fmt::format(" among its first {} tokens", encoding.size()));
  return encoding;
}

std::vector<std::vector<std::vector<MaskWord>>> MaskFiller::State::fill(std::span<const Encoding> batch) const {
  std::vector<TokenRow> rows;
  std::size_t longest = 0;
  for (const Encoding& text : batch) {
    rows.push_back({.ids = text.ids, .types = text.type_ids});
    longest = std::max(longest, text.size());
  }
  std::vector<std::int32_t> masks;
  for (std::size_t t = 0; t < batch.size(); ++t)
    for (std::size_t i = 0; i < batch[t].size(); ++i)
      if (batch[t].ids[i] == mask_id) masks.push_back(static_cast<std::int32_t>(t * longest + i));
  std::map<std::string, Feed> feeds = text_inputs(text_form(encoder), rows);
  const Array mask_rows = Array::of<std::int32_t>({static_cast<std::int64_t>(masks.size())}, masks);
  feeds.emplace("mask_rows", mask_rows);
  const Outputs outputs = executable.run(feeds);
  const Array &probabilities = outputs.at("probabilities"), &tokens = outputs.at("tokens");
  std::vector<std::vector<std::vector<MaskWord>>> words(batch.size());
  std::int64_t next = 0;
  for (std::int32_t row : masks) {
    auto& mine = words[static_cast<std::size_t>(row) / longest].emplace_back();
    for (std::int64_t k = 0; k < options.words; ++k, ++next) {
      const auto token = static_cast<std::int32_t>(tokens.get_int(next));
      mine.push_back({token, tokenizer.decode(std::span(&token, 1), false), static_cast<float>(probabilities.get_double(next))});
    }
  }
  return words;
}

MaskFiller MaskFiller::open(const std::filesystem::path& path, const Session& session, MaskFillerOptions options) {
  check_batch_size(options.batch_size);
  const LanguageModelFiles opened = open_text_encoder(path);
  const auto* files = std::get_if<DecoderFiles>(&opened);
  if (files == nullptr) refuse_encoder_decoder(path, "filling masks");
  if (!files->config.output || files->config.text_head.labels > 0)
    fail("{}: the model says no words for masks (needed: one such as BertForMaskedLM)", path.string());
  check_words(options, files->config);
  const std::int64_t length = files->checkpoint.gguf() == nullptr ? longest_text(path, files->config) : files->config.max_positions;
  Tokenizer tokenizer = open_tokenizer(path);
  tokenizer.set_padding(std::nullopt);
  tokenizer.set_truncation(Truncation{.max_length = static_cast<std::size_t>(length)});
  std::string mask = mask_of(path, tokenizer);
  const std::int32_t mask_id = *tokenizer.token_to_id(mask);
  Executable executable = files->compile(session, filler_graph(*files, options, length));
  return MaskFiller(
      std::make_shared<State>(State{files->config, std::move(tokenizer), std::move(executable), std::move(mask), mask_id, options}));
}

const std::string& MaskFiller::mask() const { return state_->mask; }

std::vector<std::vector<std::vector<MaskWord>>> MaskFiller::fill(std::span<const std::string> texts) const {
  std::vector<Encoding> encoded;
  for (const std::string& text : texts) encoded.push_back(state_->tokens(text, encoded.size() + 1));
  std::vector<std::vector<std::vector<MaskWord>>> words;
  for (std::span<const Encoding> rest = encoded; !rest.empty();) {
    const auto batch = rest.first(std::min(rest.size(), static_cast<std::size_t>(state_->options.batch_size)));
    rest = rest.subspan(batch.size());
    std::ranges::move(state_->fill(batch), std::back_inserter(words));
  }
  return words;
}

}  // namespace rlx
