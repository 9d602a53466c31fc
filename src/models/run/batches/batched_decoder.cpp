#include "models/run/batches/batched_decoder.h"

#include <algorithm>
#include <set>
#include <utility>

#include "models/layers/decoder_cache.h"

namespace rlx {
namespace {

BatchedDecoder::Options with_defaults(const DecoderFiles& model, BatchedDecoder::Options options) {
  model.check_makes_text();
  if (options.context == 0) options.context = model.config.max_positions;
  if (options.tokens == 0) options.tokens = options.context;
  if (options.context < 1 || options.chunk < 1 || options.tokens < 1)
    fail("a batch with a context of {} tokens, runs of {}, caches of {} (allowed: at least 1)", options.context, options.chunk,
         options.tokens);
  return options;
}

DecoderGraphOptions graph_options(const BatchedDecoder::Options& options) {
  return {.pages = pages_for(options.tokens),
          .capacity = options.context,
          .chunk = options.chunk,
          .cache = options.cache,
          .exact = options.exact};
}

Graph graph_with_pages(const DecoderFiles& model, const BatchedDecoder::Options& options) {
  DecoderGraphOptions all = graph_options(options);
  all.storage = stored_types(model.checkpoint, model.names);
  all.adapters = model.adapters.forms();
  return decoder_graph(model.config, all);
}

std::vector<PagePool> pools_of(const DecoderConfig& config, const DecoderGraphOptions& options) {
  std::vector<PagePool> pools;
  for (const std::int64_t window : windows_in_pages(config, options))
    pools.emplace_back(window, window == 0 ? pages_for(options.capacity) : window_pages(options, window), options.pages);
  return pools;
}

/// Names of the states that lie in the pages of each pool.
std::vector<std::vector<std::string>> states_in_pages(const Graph& graph, const DecoderConfig& config, std::span<const PagePool> pools) {
  std::vector<std::vector<std::string>> names(pools.size());
  for (const auto& [input, value] : graph.inputs()) {
    if (input.kind != InputKind::state || !input.type.is_static()) continue;
    const auto own = std::ranges::find(pools, window_of_state(config, input.name), &PagePool::window);
    names[own == pools.end() ? 0 : static_cast<std::size_t>(own - pools.begin())].push_back(input.name);  // that of window 0 is the first
  }
  return names;
}

}  // namespace

BatchedDecoder::BatchedDecoder(const Session& session, const DecoderFiles& model, Options options)
    : BatchedDecoder(session, model, with_defaults(model, options), graph_with_pages(model, with_defaults(model, options))) {}

BatchedDecoder::BatchedDecoder(const Session& session, const DecoderFiles& model, Options options, const Graph& graph)
    : config_(model.config),
      options_(options),
      recurrent_(graph),
      pools_(pools_of(config_, graph_options(options_))),
      in_pages_(states_in_pages(graph, config_, pools_)),
      executable_(all_layers_on(options_.layers_on, session, model.config), model, graph) {}

const BatchedDecoder::State& BatchedDecoder::at(Sequence sequence) const {
  const auto found = sequences_.find(sequence);
  if (found == sequences_.end()) fail("sequence {} is not in the batch", sequence);
  return found->second;
}

BatchedDecoder::Sequence BatchedDecoder::add() {
  sequences_[next_].pages.resize(pools_.size());
  return next_++;
}

BatchedDecoder::Sequence BatchedDecoder::copy(Sequence from) {
  const State& other = at(from);
  const bool copies_page = other.held % page_tokens != 0;
  for (const PagePool& pool : pools_)
    if (copies_page && pool.free_pages() == 0)
      fail("the caches of the batch are full: a copy needs a page of {} tokens, 0 are free", page_tokens);
  State mine = other;
  for (std::size_t i = 0; i < pools_.size(); ++i) {
    mine.pages[i] = pools_[i].share(other.pages[i], other.held);
    pools_[i].take(mine.pages[i], other.held);
    if (!copies_page) continue;
    const auto page = static_cast<std::size_t>(other.held / page_tokens - other.pages[i].first);
    for (const std::string& name : in_pages_[i]) executable_.copy_state_row(name, other.pages[i].pages[page], mine.pages[i].pages[page]);
  }
  recurrent_.copy(executable_, from, next_);
  sequences_[next_] = std::move(mine);
  return next_++;
}

void BatchedDecoder::remove(Sequence sequence) {
  forget(at(sequence), 0);
  recurrent_.remove(sequence);
  sequences_.erase(sequence);
}

void BatchedDecoder::rewind(Sequence sequence, std::int64_t length) {
  State& state = at(sequence);
  if (length < 0 || length > static_cast<std::int64_t>(state.ids.size()))
    fail("sequence {}: {} tokens cannot be kept (allowed: 0..{})", sequence, length, state.ids.size());
  state.ids.resize(static_cast<std::size_t>(length));
  if (length < state.held) forget(state, reachable(state, length));
}

/// For how many tokens, up to `length`, the caches can stand again.
std::int64_t BatchedDecoder::reachable(const State& state, std::int64_t length) const {
  if (config_.is_recurrent()) return 0;
  const auto all = [&](const auto& holds) {
    for (std::size_t i = 0; i < pools_.size(); ++i)
      if (!holds(pools_[i], state.pages[i])) return false;
    return true;
  };
  // What would be written next must not be seen by others.
  if (!all([&](const PagePool& pool, const PagePool::List& list) { return length % page_tokens == 0 || !pool.is_shared(list, length); }))
    length = length / page_tokens * page_tokens;
  return all([&](const PagePool& pool, const PagePool::List& list) { return pool.reaches(list, length); }) ? length : 0;
}

void BatchedDecoder::forget(State& state, std::int64_t held) {
  for (std::size_t i = 0; i < pools_.size(); ++i) pools_[i].keep(state.pages[i], held);
  state.held = held;
}

void BatchedDecoder::check(std::span<const Tokens> tokens) const {
  std::set<Sequence> named;
  std::vector<std::int64_t> pages(pools_.size(), 0);
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
    for (std::size_t i = 0; i < pools_.size(); ++i) pages[i] += pools_[i].missing(state.pages[i], length);
  }
  for (std::size_t i = 0; i < pools_.size(); ++i)
    if (pages[i] > pools_[i].free_pages())
      fail("the caches of the batch are full: {} pages of {} tokens are needed, {} are free", pages[i], page_tokens,
           pools_[i].free_pages());
}

/// The sequence with more tokens.
BatchedDecoder::State& BatchedDecoder::extended(const Tokens& tokens) {
  State& state = at(tokens.sequence);
  state.ids.insert(state.ids.end(), tokens.ids.begin(), tokens.ids.end());
  const auto end = static_cast<std::int64_t>(state.ids.size()), limit = config_.length_of_short_factors();
  const bool short_factors = limit == 0 || end <= limit;
  if (state.short_factors != short_factors) forget(state, 0);  // keys turned by other factors are of no use
  state.short_factors = short_factors;
  return state;
}

std::span<const float> BatchedDecoder::Logits::operator[](std::size_t sequence) const {
  const Place& place = places[sequence];
  const auto vocabulary = static_cast<std::size_t>(runs[place.run].shape().back());
  return runs[place.run].values<float>().subspan(static_cast<std::size_t>(place.row) * vocabulary, vocabulary);
}

BatchedDecoder::Logits BatchedDecoder::append(std::span<const Tokens> tokens, const std::function<bool()>& cancelled) {
  check(tokens);
  std::vector<BatchPiece> waiting;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const State& state = extended(tokens[i]);
    waiting.push_back({tokens[i].sequence, state.held, static_cast<std::int64_t>(state.ids.size()), i});
  }
  Logits logits{.runs = {}, .places = std::vector<Logits::Place>(tokens.size())};
  while (!waiting.empty()) {
    if (cancelled && cancelled()) {
      for (const BatchPiece& piece : waiting) at(piece.sequence).ids.resize(static_cast<std::size_t>(piece.begin));
      return {};
    }
    run(config_.is_recurrent() ? next_even_run(waiting, options_.chunk, most_even_sequences, most_each())
                               : next_run(waiting, options_.chunk),
        logits);
  }
  return logits;
}

/// Tokens of a sequence in a run of a recurrent model.
std::int64_t BatchedDecoder::most_each() const {
  return options_.exact && config_.has_mixer(Mixer::state_space_heads) ? 1 : options_.chunk;
}

BatchedDecoder::Feeds BatchedDecoder::feeds_of(std::span<const BatchPiece> run) const {
  // Recurrent layers take a sequence's tokens as a row; attention alone takes them one by one.
  const std::int64_t length = config_.is_recurrent() ? run[0].end - run[0].begin : 1;
  std::vector<std::int32_t> ids, positions, contexts, rows;
  for (const BatchPiece& piece : run) {
    const State& state = at(piece.sequence);
    for (std::int64_t at = piece.begin; at < piece.end; ++at) {
      ids.push_back(state.ids[static_cast<std::size_t>(at)]);
      positions.push_back(static_cast<std::int32_t>(at));
    }
    for (std::int64_t row = piece.begin; row < piece.end; row += length) contexts.push_back(static_cast<std::int32_t>(state.ids.size()));
    if (piece.last) rows.push_back(static_cast<std::int32_t>(ids.size()) - 1);
  }
  if (rows.empty()) rows.push_back(0);  // a run has at least one
  const auto n = static_cast<std::int64_t>(contexts.size());
  Feeds feeds{{"input_ids", Array::of<std::int32_t>({n, length}, ids)},
              {"positions", Array::of<std::int32_t>({n, length}, positions)},
              {"rows", Array::of<std::int32_t>({static_cast<std::int64_t>(rows.size())}, rows)}};
  for (std::size_t pool = 0; pool < pools_.size(); ++pool) feed_pages(run, length, pool, feeds);
  if (config_.length_of_short_factors() > 0) feeds.emplace("context", Array::of<std::int32_t>({n}, contexts));
  if (config_.is_recurrent()) feeds.emplace("mask", token_mask(n, length));
  return feeds;
}

/// The pages of each row of `length` tokens.
void BatchedDecoder::feed_pages(std::span<const BatchPiece> run, std::int64_t length, std::size_t pool, Feeds& feeds) const {
  std::size_t count = 0;
  for (const BatchPiece& piece : run) count = std::max(count, at(piece.sequence).pages[pool].pages.size());
  std::vector<std::int32_t> pages, first;
  for (const BatchPiece& piece : run) {
    const PagePool::List& own = at(piece.sequence).pages[pool];
    for (std::int64_t row = piece.begin; row < piece.end; row += length) {
      pages.insert(pages.end(), own.pages.begin(), own.pages.end());
      first.push_back(static_cast<std::int32_t>(own.first));
      pages.resize(first.size() * count, 0);  // what is behind the tokens is not read
    }
  }
  const auto n = static_cast<std::int64_t>(first.size());
  const std::int64_t window = pools_[pool].window();
  feeds.emplace(pages_name(window), Array::of<std::int32_t>({n, static_cast<std::int64_t>(count)}, pages));
  if (window > 0) feeds.emplace(first_page_name(window), Array::of<std::int32_t>({n}, first));
}

void BatchedDecoder::run(std::span<const BatchPiece> pieces, Logits& logits) {
  std::vector<Sequence> sequences;
  for (const BatchPiece& piece : pieces) {
    sequences.push_back(piece.sequence);
    for (std::size_t i = 0; i < pools_.size(); ++i) pools_[i].take(at(piece.sequence).pages[i], piece.end);
  }
  recurrent_.bring(executable_, sequences);
  Array result = executable_.run(feeds_of(pieces)).at("logits");
  std::int64_t rows = 0;
  for (const BatchPiece& piece : pieces) {
    State& state = at(piece.sequence);
    state.held = piece.end;
    for (std::size_t i = 0; i < pools_.size(); ++i) pools_[i].pass(state.pages[i], piece.end);
    if (piece.last) logits.places[piece.result] = {logits.runs.size(), rows++};
  }
  if (rows > 0) logits.runs.push_back(std::move(result));
}

}  // namespace rlx
