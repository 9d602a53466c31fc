#include "models/run/caches/cached_decoder.h"

#include <algorithm>
#include <cstring>

#include "base/memory/pages.h"
#include "base/progress.h"
#include "formats/tensors/tensor_view.h"
#include "models/layers/decoder_cache.h"
#include "models/layers/decoder_step.h"

namespace rlx {
namespace {

CachedDecoder::Options resolved(const DecoderFiles& model, CachedDecoder::Options options) {
  model.check_makes_text();
  if (options.context == 0) options.context = model.config.max_positions;
  options.chunk = std::min(options.chunk, options.context);
  if (options.exact && model.config.has_mixer(Mixer::state_space_heads)) options.chunk = 1;
  return options;
}

Graph graph_of(const DecoderFiles& model, const CachedDecoder::Options& options) {
  return decoder_graph(model.config, {.capacity = options.context,
                                      .chunk = options.chunk,
                                      .cache = options.cache,
                                      .exact = options.exact,
                                      .storage = stored_types(model.checkpoint, model.names),
                                      .adapters = model.adapters.forms()});
}

std::vector<Input> states_of(const Graph& graph) {
  std::vector<Input> states;
  for (const auto& [input, value] : graph.inputs())
    if (input.kind == InputKind::state) states.push_back(input);
  return states;
}

/// Tokens between two looks at which pages the caches have filled.
constexpr std::int64_t backed_ahead = 256;

/// Whether a state has a row (axis 2) for each token.
bool grows(const Input& state) { return state.name.find(".attention.") != std::string::npos; }

std::vector<std::int64_t> shape_of(const Input& state) {
  std::vector<std::int64_t> shape;
  for (const Dim& dim : state.type.shape) shape.push_back(dim.value());
  return shape;
}

/// See ring_name, for a run whose first token is at a position.
Array ring_table(std::int64_t window, std::int64_t pages, std::int64_t position) {
  const std::int64_t first = std::max<std::int64_t>(position - window + 1, 0) / page_tokens;
  Array table(i32, {1, pages});
  for (std::int64_t page = 0; page < pages; ++page) table.set_int(page, (first + page) % pages);
  return table;
}

/// What is saved of a state: (1, heads, tokens, D) where it grows.
std::vector<std::int64_t> saved_shape(const Input& state, std::int64_t tokens) {
  auto shape = shape_of(state);
  if (grows(state)) shape[0] = 1, shape[2] = tokens;
  return shape;
}

/// Tokens that a state has rows for.
std::int64_t rows_of(const Input& state) { return state.type.shape[0].value() * state.type.shape[2].value(); }

/// Calls `copy(saved, whole, bytes)` for each head's row of tokens first..end: its bytes in what is saved of them and in the state, (pages,
/// heads, rows, D).
void for_each_row(const Input& state, std::int64_t first, std::int64_t end, const auto& copy) {
  const auto shape = shape_of(state);
  const std::int64_t pages = shape[0], heads = shape[1], rows = shape[2], bytes = bytes_for(state.type.dtype, shape[3]);
  for (std::int64_t head = 0; head < heads; ++head)
    for (std::int64_t token = std::max(first, end - pages * rows); token < end; ++token) {
      const std::int64_t saved = head * (end - first) + token - first, whole = (token / rows % pages * heads + head) * rows + token % rows;
      copy(static_cast<std::size_t>(saved * bytes), static_cast<std::size_t>(whole * bytes), static_cast<std::size_t>(bytes));
    }
}

/// A cache begins in small pages: a context that is long may never be used, and a first token would take a huge page of each head. Those of
/// which its first tokens fill half are to be huge, as attention reads them faster.
void use_huge_pages_of(const Input& state, std::span<const std::byte> bytes, std::int64_t tokens) {
  const auto parts = static_cast<std::size_t>(state.type.shape[0].value() > 1 ? 1 : state.type.shape[1].value());  // that grow at once
  const std::size_t part = bytes.size() / parts;
  const auto used = static_cast<std::size_t>(static_cast<double>(part) *
                                             std::min(1.0, static_cast<double>(tokens) / static_cast<double>(rows_of(state))));
  const std::size_t beyond = reinterpret_cast<std::uintptr_t>(bytes.data()) % huge_page_bytes;
  for (std::size_t at = (huge_page_bytes - beyond) % huge_page_bytes; at + huge_page_bytes <= bytes.size(); at += huge_page_bytes) {
    const std::size_t end = at + huge_page_bytes;
    std::size_t filled = 0;
    for (std::size_t i = at / part; i < parts && i * part < end; ++i) {
      const std::size_t from = std::max(at, i * part), to = std::min(end, i * part + used);
      filled += to > from ? to - from : 0;
    }
    if (filled >= huge_page_bytes / 2) use_huge_pages(bytes.subspan(at, huge_page_bytes));
  }
}

/// Logits of several runs, on the host.
Array joined(const std::vector<Array>& logits, std::int64_t vocabulary) {
  std::vector<float> all;
  for (const Array& each : logits) all.insert(all.end(), each.values<float>().begin(), each.values<float>().end());
  return Array::of<float>({1, std::ssize(all) / vocabulary, vocabulary}, all);
}

/// The bytes of a state whose pages are ours; none of one on a device.
std::span<const std::byte> on_host(const Array& state) {
  return state.device() == Device::cpu() ? state.bytes() : std::span<const std::byte>();
}

}  // namespace

CachedDecoder::CachedDecoder(const Session& session, const DecoderFiles& model, Options options)
    : CachedDecoder(session, model, resolved(model, options), graph_of(model, resolved(model, options))) {}

CachedDecoder::CachedDecoder(const Session& session, const DecoderFiles& model, Options options, const Graph& graph)
    : config_(model.config),
      options_(options),
      states_(states_of(graph)),
      executable_(all_layers_on(options.layers_on, session, model.config), model, graph) {
  const DecoderGraphOptions its{.capacity = options.context, .chunk = options.chunk};
  for (const std::int64_t window : windows_in_pages(config_, its)) rings_[window] = window_pages(its, window);
  try {
    for (const Input& state : states_)
      if (grows(state)) use_small_pages(on_host(executable_.state(state.name)));
  } catch (const Error& error) {
    fail("a context of {} tokens: {}", options_.context, error.what());
  }
}

void CachedDecoder::check(std::span<const std::int32_t> ids, std::int64_t wanted) const {
  if (ids.empty()) fail("there are no tokens to continue");
  check_ids(ids, config_.vocab_size);
  const std::size_t length = ids_.size() + ids.size();
  if (static_cast<std::int64_t>(length) > options_.context)
    fail("{} tokens are more than the context holds (allowed: up to {})", length, options_.context);
  if (wanted < 1 || wanted > static_cast<std::int64_t>(ids.size()))
    fail("logits of the last {} of {} tokens are wanted (allowed: 1..{})", wanted, ids.size(), ids.size());
}

bool CachedDecoder::cache_has_short_factors(std::int64_t length) const {
  return config_.length_of_short_factors() == 0 || length <= config_.length_of_short_factors();
}

Array CachedDecoder::read(std::span<const std::int32_t> ids, std::int64_t wanted, const std::function<bool()>& cancelled) {
  check(ids, wanted);
  ids_.insert(ids_.end(), ids.begin(), ids.end());
  const bool short_factors = cache_has_short_factors(static_cast<std::int64_t>(ids_.size()));
  if (short_factors != short_factors_) held_ = marked_ = 0;  // keys turned by other factors are of no use
  short_factors_ = short_factors;
  return run(wanted, cancelled);
}

Array CachedDecoder::begin(std::span<const std::int32_t> ids, const std::function<bool()>& cancelled) {
  const auto common = static_cast<std::size_t>(std::mismatch(ids_.begin(), ids_.end(), ids.begin(), ids.end()).first - ids_.begin());
  const std::size_t kept = std::min(common, ids.size() - std::min<std::size_t>(ids.size(), 1));  // the last token's logits are wanted
  rewind(static_cast<std::int64_t>(kept));
  return read(ids.subspan(kept), 1, cancelled);
}

void CachedDecoder::rewind(std::int64_t length) {
  ids_.resize(static_cast<std::size_t>(length));
  if (held_ > length) held_ = config_.is_recurrent() ? back_to_mark(length) : length;
  if (held_ < least_) held_ = 0;
}

/// The first tokens that are lost when so many are held.
std::int64_t CachedDecoder::least_behind(std::int64_t held) const {
  const auto is_full = [&](const auto& ring) { return held > ring.second * page_tokens; };
  return std::ranges::any_of(rings_, is_full) ? held - options_.chunk : 0;
}

std::int64_t CachedDecoder::most_together() const {
  if (config_.has_mixer(Mixer::state_space_heads)) return 1;  // their chunks are products, which round otherwise
  // Attention may round what runs with more tokens; two such runs, of which the first is taken back, are read as one.
  constexpr std::int64_t most_unrounded = 15;
  const auto length = static_cast<std::int64_t>(ids_.size()), last_short = config_.length_of_short_factors();
  std::int64_t most = options_.exact ? options_.context : most_unrounded - unread();
  if (length <= last_short) most = std::min(most, last_short - length);  // those behind turn keys otherwise, of the tokens before too
  return std::max<std::int64_t>(most, 1);
}

void CachedDecoder::mark() {
  if (!config_.is_recurrent()) return;
  for (const Input& state : states_)  // a run gives them new memory; what grows stays where it lies
    if (!grows(state)) marked_states_[state.name] = executable_.state(state.name);
  marked_ = held_;
}

std::int64_t CachedDecoder::back_to_mark(std::int64_t length) {
  if (marked_ > length) marked_ = 0;
  if (marked_ > 0)
    for (const auto& [name, state] : marked_states_) executable_.set_state(name, state);
  return marked_;
}

void CachedDecoder::back(std::int64_t tokens) {
  if (tokens <= backed_) return;
  backed_ = tokens + backed_ahead;
  for (const Input& state : states_)
    if (grows(state)) use_huge_pages_of(state, on_host(executable_.state(state.name)), backed_);
}

Array CachedDecoder::run(std::int64_t wanted, const std::function<bool()>& cancelled) {
  const auto end = static_cast<std::int64_t>(ids_.size()), begin = held_;
  const auto tell = [&](std::int64_t at) {
    if (end - begin > options_.chunk)
      report_progress("reading", static_cast<std::size_t>(at - begin), static_cast<std::size_t>(end - begin));
  };
  back(end);
  std::vector<Array> logits;  // of runs
  for (std::int64_t at = held_, count = 0; at < end; at += count) {
    count = std::min(options_.chunk, end - at);
    if (cancelled && cancelled()) {
      ids_.resize(static_cast<std::size_t>(at));
      tell(end);
      return {};
    }
    tell(at);
    const std::span<const std::int32_t> ids = std::span(ids_).subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(count));
    std::vector<std::int32_t> rows;  // never none
    for (std::int64_t row = std::min(count - 1, std::max<std::int64_t>(end - wanted - at, 0)); row < count; ++row)
      rows.push_back(static_cast<std::int32_t>(row));
    if (at == 0) least_ = 0;
    held_ = 0;  // until the run has ended: it may fail halfway
    Array result = executable_.run(feeds(ids, at, end, rows)).at("logits");
    held_ = at + count;
    least_ = std::max(least_, least_behind(held_));
    if (held_ > end - wanted) logits.push_back(std::move(result));
  }
  tell(end);
  return logits.size() == 1 ? logits[0] : joined(logits, config_.vocab_size);
}

std::map<std::string, Feed> CachedDecoder::feeds(std::span<const std::int32_t> ids, std::int64_t past, std::int64_t context,
                                                 std::span<const std::int32_t> rows) const {
  const auto number = [](std::vector<std::int64_t> shape, std::int64_t value) {
    Array array(i32, std::move(shape));
    array.set_int(0, value);
    return array;
  };
  std::map<std::string, Feed> all{
      {"input_ids", Array::of({1, std::ssize(ids)}, ids)}, {"past", number({1}, past)}, {"rows", Array::of({1, std::ssize(rows)}, rows)}};
  if (config_.length_of_short_factors() > 0) all.emplace("context", number({}, context));
  if (config_.is_recurrent()) all.emplace("mask", token_mask(1, std::ssize(ids)));
  for (const auto& [window, pages] : rings_) all.emplace(ring_name(window), ring_table(window, pages, past));
  return all;
}

std::map<std::string, Feed> CachedDecoder::inputs(std::int64_t past, std::int64_t count) const {
  const std::vector<std::int32_t> ids(static_cast<std::size_t>(count), 1), rows{static_cast<std::int32_t>(count - 1)};
  return feeds(ids, past, past + count, rows);
}

std::int64_t CachedDecoder::fewest_saved(const Input& state, std::int64_t tokens) const {
  const std::int64_t window = grows(state) ? window_of_state(config_, state.name) : 0;
  return window > 0 ? std::min(window, tokens) : tokens;
}

DecoderCache CachedDecoder::cache() const {
  DecoderCache cache{.ids = {ids_.begin(), ids_.begin() + held_}, .short_factors = short_factors_};
  for (const Input& state : states_) {
    const Array whole = executable_.state(state.name);
    if (!grows(state)) {
      cache.states.emplace(state.name, whole);
      continue;
    }
    const std::int64_t count = rows_of(state) < options_.context ? fewest_saved(state, held_) : held_;
    Array& kept = cache.states.emplace(state.name, Array(state.type.dtype, saved_shape(state, count))).first->second;
    for_each_row(state, held_ - count, held_, [&](std::size_t saved, std::size_t from, std::size_t bytes) {
      std::memcpy(kept.mutable_bytes().data() + saved, whole.bytes().data() + from, bytes);
    });
  }
  return cache;
}

/// The state with what was saved of so many tokens.
Array CachedDecoder::restored(const Input& state, const Array& saved, std::int64_t length, std::string_view what) const {
  const bool fits = grows(state) && saved.rank() == 4 && saved.shape()[2] >= fewest_saved(state, length) && saved.shape()[2] <= length;
  const auto shape = saved_shape(state, fits ? saved.shape()[2] : length);
  if (saved.dtype() != state.type.dtype || saved.shape() != shape)
    fail("{}: tensor '{}' is {} (this model's is {})", what, state.name, type_text(saved.dtype(), saved.shape()),
         type_text(state.type.dtype, shape));
  if (!grows(state)) return saved;
  Array whole(state.type.dtype, shape_of(state));
  for_each_row(state, length - shape[2], length, [&](std::size_t from, std::size_t to, std::size_t bytes) {
    std::memcpy(whole.mutable_bytes().data() + to, saved.bytes().data() + from, bytes);
  });
  return whole;
}

void CachedDecoder::restore(const DecoderCache& cache, std::string_view what) {
  const auto length = static_cast<std::int64_t>(cache.ids.size());
  if (length > options_.context) fail("{}: {} tokens are more than the context holds (allowed: up to {})", what, length, options_.context);
  for (std::int32_t id : cache.ids)
    if (id < 0 || id >= config_.vocab_size)
      fail("{}: token {} is not in the vocabulary (allowed: 0..{})", what, id, config_.vocab_size - 1);
  NamedArrays states;
  std::int64_t least = least_behind(length);
  for (const Input& state : states_) {
    const auto saved = cache.states.find(state.name);
    if (saved == cache.states.end()) fail("{}: tensor '{}' is missing", what, state.name);
    states.emplace(state.name, restored(state, saved->second, length, what));
    if (grows(state) && saved->second.shape()[2] < length) least = length;
  }
  if (cache.states.size() != states_.size()) fail("{}: {} tensors for {} caches of this model", what, cache.states.size(), states_.size());
  for (const auto& [name, array] : states) executable_.set_state(name, array);
  ids_ = cache.ids, held_ = length, least_ = least, marked_ = 0, short_factors_ = cache.short_factors;
}

std::int32_t greedy_choice(std::span<const float> logits) {
  return static_cast<std::int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

}  // namespace rlx
