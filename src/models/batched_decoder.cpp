#include "models/batched_decoder.h"

#include <algorithm>
#include <set>
#include <utility>

#include "models/decoder_step.h"

namespace rlx {
namespace {

std::int64_t pages_for(std::int64_t tokens) { return (tokens + page_tokens - 1) / page_tokens; }

BatchedDecoder::Options with_defaults(const DecoderConfig& config, BatchedDecoder::Options options) {
  if (!config.causal) fail("this model is an encoder (allowed in a batch: decoders)");
  if (options.context == 0) options.context = config.max_positions;
  if (options.tokens == 0) options.tokens = options.context;
  if (options.context < 1 || options.chunk < 1 || options.tokens < 1)
    fail("a batch with a context of {} tokens, runs of {}, caches of {} (allowed: at least 1)", options.context, options.chunk,
         options.tokens);
  return options;
}

Graph graph_with_pages(const DecoderFiles& model, const BatchedDecoder::Options& options) {
  return decoder_graph(model.config, {.pages = pages_for(options.tokens),
                                      .capacity = options.context,
                                      .chunk = options.chunk,
                                      .cache = options.cache,
                                      .storage = stored_types(model.checkpoint, model.names),
                                      .adapters = model.adapters.forms()});
}

std::vector<std::string> states_in_pages(const Graph& graph) {
  std::vector<std::string> names;
  for (const auto& [input, value] : graph.inputs())
    if (input.kind == InputKind::state && input.type.is_static()) names.push_back(input.name);
  return names;
}

Executable compiled(const Session& session, const DecoderFiles& model, const Graph& graph) {
  const NamedArrays weights = model.weights(graph);  // before compiling, which takes longer: they may not fit
  Executable executable = session.compile(graph);
  executable.set_params(weights);
  return executable;
}

}  // namespace

BatchedDecoder::BatchedDecoder(const Session& session, const DecoderFiles& model, Options options)
    : BatchedDecoder(session, model, with_defaults(model.config, options), graph_with_pages(model, with_defaults(model.config, options))) {}

BatchedDecoder::BatchedDecoder(const Session& session, const DecoderFiles& model, Options options, const Graph& graph)
    : config_(model.config),
      options_(options),
      recurrent_(graph),
      in_pages_(states_in_pages(graph)),
      executable_(compiled(session, model, graph)),
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
  const State& other = at(from);
  State mine = other;
  mine.pages.resize(static_cast<std::size_t>(mine.held / page_tokens));
  if (mine.held % page_tokens != 0 && free_.empty())
    fail("the caches of the batch are full: a copy needs a page of {} tokens, 0 are free", page_tokens);
  for (std::int32_t page : mine.pages) ++users_[static_cast<std::size_t>(page)];
  const std::size_t shared = mine.pages.size();
  take_pages(mine, mine.held);
  if (mine.pages.size() > shared)
    for (const std::string& name : in_pages_) executable_.copy_state_row(name, other.pages[shared], mine.pages[shared]);
  recurrent_.copy(executable_, from, next_);
  sequences_[next_] = std::move(mine);
  return next_++;
}

void BatchedDecoder::remove(Sequence sequence) {
  give_back(at(sequence), 0);
  recurrent_.remove(sequence);
  sequences_.erase(sequence);
}

void BatchedDecoder::rewind(Sequence sequence, std::int64_t length) {
  State& state = at(sequence);
  if (length < 0 || length > static_cast<std::int64_t>(state.ids.size()))
    fail("sequence {}: {} tokens cannot be kept (allowed: 0..{})", sequence, length, state.ids.size());
  state.ids.resize(static_cast<std::size_t>(length));
  if (state.held > length) state.held = config_.is_recurrent() ? 0 : length;
  const auto is_shared = [&](std::int32_t page) { return users_[static_cast<std::size_t>(page)] > 1; };
  auto keep = static_cast<std::size_t>(pages_for(state.held));
  // What would be written next must not be seen by others.
  if (state.held % page_tokens != 0 && is_shared(state.pages[keep - 1])) state.held = static_cast<std::int64_t>(--keep) * page_tokens;
  give_back(state, keep);
}

/// Pages for so many tokens in all.
void BatchedDecoder::take_pages(State& state, std::int64_t tokens) {
  for (auto missing = pages_for(tokens) - static_cast<std::int64_t>(state.pages.size()); missing > 0; --missing) {
    state.pages.push_back(free_.back());
    free_.pop_back();
    ++users_[static_cast<std::size_t>(state.pages.back())];
  }
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

/// The sequence with more tokens, and with pages for them.
BatchedDecoder::State& BatchedDecoder::extended(const Tokens& tokens) {
  State& state = at(tokens.sequence);
  state.ids.insert(state.ids.end(), tokens.ids.begin(), tokens.ids.end());
  const auto end = static_cast<std::int64_t>(state.ids.size()), limit = config_.length_of_short_factors();
  const bool short_factors = limit == 0 || end <= limit;
  if (state.short_factors != short_factors) give_back(state, 0), state.held = 0;  // keys turned by other factors are of no use
  state.short_factors = short_factors;
  take_pages(state, end);
  return state;
}

std::vector<std::vector<float>> BatchedDecoder::append(std::span<const Tokens> tokens) {
  check(tokens);
  std::vector<BatchPiece> waiting;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const State& state = extended(tokens[i]);
    waiting.push_back({tokens[i].sequence, state.held, static_cast<std::int64_t>(state.ids.size()), i});
  }
  std::vector<std::vector<float>> logits(tokens.size());
  while (!waiting.empty())
    run(config_.is_recurrent() ? next_even_run(waiting, options_.chunk, most_even_sequences) : next_run(waiting, options_.chunk), logits);
  return logits;
}

std::map<std::string, Feed> BatchedDecoder::feeds_of(std::span<const BatchPiece> run) const {
  // Recurrent layers take a sequence's tokens as a row; attention alone takes them one by one.
  const std::int64_t length = config_.is_recurrent() ? run[0].end - run[0].begin : 1;
  std::vector<std::int32_t> ids, positions, contexts, pages, rows;
  std::size_t count = 0;
  for (const BatchPiece& piece : run) count = std::max(count, static_cast<std::size_t>(pages_for(piece.end)));
  for (const BatchPiece& piece : run) {
    const State& state = at(piece.sequence);
    std::vector<std::int32_t> own = state.pages;
    own.resize(count, 0);  // what is behind the tokens is not read
    for (std::int64_t at = piece.begin; at < piece.end; ++at) {
      ids.push_back(state.ids[static_cast<std::size_t>(at)]);
      positions.push_back(static_cast<std::int32_t>(at));
    }
    for (std::int64_t row = piece.begin; row < piece.end; row += length) {
      contexts.push_back(static_cast<std::int32_t>(state.ids.size()));
      pages.insert(pages.end(), own.begin(), own.end());
    }
    if (piece.last) rows.push_back(static_cast<std::int32_t>(ids.size()) - 1);
  }
  if (rows.empty()) rows.push_back(0);  // a run has at least one
  const auto n = static_cast<std::int64_t>(contexts.size());
  const auto table = [n](const std::vector<std::int32_t>& values) {
    return Array::of<std::int32_t>({n, static_cast<std::int64_t>(values.size()) / n}, values);
  };
  std::map<std::string, Feed> feeds{{"input_ids", table(ids)}, {"positions", table(positions)}, {"pages", table(pages)}};
  feeds.emplace("rows", Array::of<std::int32_t>({static_cast<std::int64_t>(rows.size())}, rows));
  if (config_.length_of_short_factors() > 0) feeds.emplace("context", Array::of<std::int32_t>({n}, contexts));
  if (config_.is_recurrent()) feeds.emplace("mask", token_mask(n, length));
  return feeds;
}

void BatchedDecoder::run(std::span<const BatchPiece> pieces, std::vector<std::vector<float>>& logits) {
  std::vector<Sequence> sequences;
  for (const BatchPiece& piece : pieces) sequences.push_back(piece.sequence);
  recurrent_.bring(executable_, sequences);
  const Array result = executable_.run(feeds_of(pieces)).at("logits");
  std::span<const float> rest = result.values<float>();
  const auto vocabulary = static_cast<std::size_t>(config_.vocab_size);
  for (const BatchPiece& piece : pieces) {
    at(piece.sequence).held = piece.end;
    if (!piece.last) continue;
    logits[piece.result].assign(rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(vocabulary));
    rest = rest.subspan(vocabulary);
  }
}

}  // namespace rlx
