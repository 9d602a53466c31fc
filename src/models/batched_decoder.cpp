#include "models/batched_decoder.h"

#include <algorithm>
#include <set>
#include <utility>

namespace rlx {
namespace {

std::int64_t pages_for(std::int64_t tokens) { return (tokens + page_tokens - 1) / page_tokens; }

BatchedDecoder::Options with_defaults(const DecoderConfig& config, BatchedDecoder::Options options) {
  if (!config.causal || config.is_recurrent())
    fail("this model is {} (allowed in a batch: decoders whose layers are attention)", config.causal ? "recurrent" : "an encoder");
  if (options.context == 0) options.context = config.max_positions;
  if (options.tokens == 0) options.tokens = options.context;
  if (options.context < 1 || options.chunk < 1 || options.tokens < 1)
    fail("a batch with a context of {} tokens, runs of {}, caches of {} (allowed: at least 1)", options.context, options.chunk,
         options.tokens);
  return options;
}

Executable compiled_with_pages(const Session& session, const DecoderFiles& model, const BatchedDecoder::Options& options) {
  const Graph graph = decoder_graph(model.config, {.pages = pages_for(options.tokens),
                                                   .capacity = options.context,
                                                   .chunk = options.chunk,
                                                   .cache = options.cache,
                                                   .storage = stored_types(model.checkpoint, model.names),
                                                   .adapters = model.adapters.forms()});
  const NamedArrays weights = model.weights(graph);  // before compiling, which takes longer: they may not fit
  Executable executable = session.compile(graph);
  executable.set_params(weights);
  return executable;
}

/// What one run is fed with.
struct RunInputs {
  std::vector<std::int32_t> ids, positions, contexts, pages, rows;
};

}  // namespace

BatchedDecoder::BatchedDecoder(const Session& session, const DecoderFiles& model, Options options)
    : config_(model.config),
      options_(with_defaults(config_, options)),
      executable_(compiled_with_pages(session, model, options_)),
      users_(static_cast<std::size_t>(pages_for(options_.tokens)), 0) {
  for (auto page = static_cast<std::int32_t>(users_.size()); page-- > 0;) free_.push_back(page);
}

const BatchedDecoder::State& BatchedDecoder::at(Sequence sequence) const {
  const auto found = sequences_.find(sequence);
  if (found == sequences_.end()) fail("sequence {} is not in the batch", sequence);
  return found->second;
}

BatchedDecoder::Sequence BatchedDecoder::add() {
  sequences_[next_];
  return next_++;
}

BatchedDecoder::Sequence BatchedDecoder::copy(Sequence from) {
  State mine = at(from);
  mine.held = mine.held / page_tokens * page_tokens;
  mine.pages.resize(static_cast<std::size_t>(pages_for(mine.held)));
  for (std::int32_t page : mine.pages) ++users_[static_cast<std::size_t>(page)];
  sequences_[next_] = std::move(mine);
  return next_++;
}

void BatchedDecoder::remove(Sequence sequence) {
  give_back(at(sequence), 0);
  sequences_.erase(sequence);
}

void BatchedDecoder::rewind(Sequence sequence, std::int64_t length) {
  State& state = at(sequence);
  if (length < 0 || length > static_cast<std::int64_t>(state.ids.size()))
    fail("sequence {}: {} tokens cannot be kept (allowed: 0..{})", sequence, length, state.ids.size());
  state.ids.resize(static_cast<std::size_t>(length));
  state.held = std::min(state.held, length);
  const auto is_shared = [&](std::int32_t page) { return users_[static_cast<std::size_t>(page)] > 1; };
  auto keep = static_cast<std::size_t>(pages_for(state.held));
  // What would be written next must not be seen by others.
  if (state.held % page_tokens != 0 && is_shared(state.pages[keep - 1])) state.held = static_cast<std::int64_t>(--keep) * page_tokens;
  give_back(state, keep);
}

/// Keeps the first `pages` of a sequence.
void BatchedDecoder::give_back(State& state, std::size_t pages) {
  for (; state.pages.size() > pages; state.pages.pop_back())
    if (--users_[static_cast<std::size_t>(state.pages.back())] == 0) free_.push_back(state.pages.back());
}

void BatchedDecoder::check(std::span<const Tokens> tokens) const {
  std::set<Sequence> named;
  std::int64_t pages = 0;
  for (const Tokens& each : tokens) {
    const State& state = at(each.sequence);
    if (!named.insert(each.sequence).second) fail("sequence {} is named twice in one call", each.sequence);
    if (each.ids.empty()) fail("sequence {}: there are no tokens to continue", each.sequence);
    for (std::int32_t id : each.ids)
      if (id < 0 || id >= config_.vocab_size)
        fail("sequence {}: token {} is not in the vocabulary (allowed: 0..{})", each.sequence, id, config_.vocab_size - 1);
    const auto length = static_cast<std::int64_t>(state.ids.size() + each.ids.size());
    if (length > options_.context)
      fail("sequence {}: {} tokens are more than the context holds (allowed: up to {})", each.sequence, length, options_.context);
    pages += pages_for(length) - static_cast<std::int64_t>(state.pages.size());
  }
  if (pages > static_cast<std::int64_t>(free_.size()))
    fail("the caches of the batch are full: {} pages of {} tokens are needed, {} are free", pages, page_tokens, free_.size());
}

std::vector<std::vector<float>> BatchedDecoder::append(std::span<const Tokens> tokens) {
  check(tokens);
  std::vector<std::vector<float>> logits(tokens.size());
  std::vector<Piece> pieces;
  std::int64_t room = options_.chunk;
  const auto flush = [&] {
    run(pieces, logits);
    pieces.clear();
    room = options_.chunk;
  };
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    State& state = at(tokens[i].sequence);
    state.ids.insert(state.ids.end(), tokens[i].ids.begin(), tokens[i].ids.end());
    const auto end = static_cast<std::int64_t>(state.ids.size()), limit = config_.length_of_short_factors();
    const bool short_factors = limit == 0 || end <= limit;
    if (state.short_factors != short_factors) give_back(state, 0), state.held = 0;  // keys turned by other factors are of no use
    state.short_factors = short_factors;
    for (auto missing = pages_for(end) - static_cast<std::int64_t>(state.pages.size()); missing > 0; --missing) {
      state.pages.push_back(free_.back());
      free_.pop_back();
      ++users_[static_cast<std::size_t>(state.pages.back())];
    }
    for (std::int64_t at = state.held; at < end;) {
      const std::int64_t stop = std::min(end, at + room);
      pieces.push_back({&state, at, stop, i, stop == end});
      room -= stop - at;
      at = stop;
      if (room == 0) flush();
    }
  }
  if (!pieces.empty()) flush();
  return logits;
}

void BatchedDecoder::run(std::span<const Piece> pieces, std::vector<std::vector<float>>& logits) {
  RunInputs inputs;
  std::size_t count = 0;
  for (const Piece& piece : pieces) count = std::max(count, static_cast<std::size_t>(pages_for(piece.end)));
  for (const Piece& piece : pieces) {
    std::vector<std::int32_t> pages = piece.state->pages;
    pages.resize(count, 0);  // what is behind the tokens is not read
    for (std::int64_t at = piece.begin; at < piece.end; ++at) {
      inputs.ids.push_back(piece.state->ids[static_cast<std::size_t>(at)]);
      inputs.positions.push_back(static_cast<std::int32_t>(at));
      inputs.contexts.push_back(static_cast<std::int32_t>(piece.state->ids.size()));
      inputs.pages.insert(inputs.pages.end(), pages.begin(), pages.end());
    }
    if (piece.last) inputs.rows.push_back(static_cast<std::int32_t>(inputs.ids.size()) - 1);
  }
  if (inputs.rows.empty()) inputs.rows.push_back(0);  // a run has at least one
  const Array pages =
      Array::of<std::int32_t>({static_cast<std::int64_t>(inputs.ids.size()), static_cast<std::int64_t>(count)}, inputs.pages);
  std::map<std::string, Feed> feeds{{"input_ids", inputs.ids}, {"positions", inputs.positions}, {"pages", pages}, {"rows", inputs.rows}};
  if (config_.length_of_short_factors() > 0) feeds.emplace("context", inputs.contexts);
  const Array result = executable_.run(feeds).at("logits");
  std::span<const float> rest = result.values<float>();
  const auto vocabulary = static_cast<std::size_t>(config_.vocab_size);
  for (const Piece& piece : pieces) {
    piece.state->held = piece.end;
    if (!piece.last) continue;
    logits[piece.result].assign(rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(vocabulary));
    rest = rest.subspan(vocabulary);
  }
}

}  // namespace rlx
