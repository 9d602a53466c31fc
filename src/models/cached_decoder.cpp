#include "models/cached_decoder.h"

#include <algorithm>
#include <cstring>

#include "formats/tensor_view.h"

namespace rlx {
namespace {

CachedDecoder::Options resolved(const DecoderConfig& config, CachedDecoder::Options options) {
  if (!config.causal) fail("this model is an encoder: it makes no text (rlx verify runs it)");
  if (options.context == 0) options.context = config.max_positions;
  options.chunk = std::min(options.chunk, options.context);
  return options;
}

Graph graph_of(const DecoderFiles& model, const CachedDecoder::Options& options) {
  return decoder_graph(model.config, {.capacity = options.context,
                                      .chunk = options.chunk,
                                      .cache = options.cache,
                                      .storage = stored_types(model.checkpoint, model.names),
                                      .adapters = model.adapters.forms()});
}

std::vector<Input> states_of(const Graph& graph) {
  std::vector<Input> states;
  for (const auto& [input, value] : graph.inputs())
    if (input.kind == InputKind::state) states.push_back(input);
  return states;
}

Executable compiled(const Session& session, const DecoderFiles& model, const Graph& graph) {
  const NamedArrays weights = model.weights(graph);  // before compiling, which takes longer: they may not fit
  Executable executable = session.compile(graph);
  executable.set_params(weights);
  return executable;
}

/// Whether a state has a row (axis 2) for each token.
bool grows(const Input& state) { return state.name.find(".attention.") != std::string::npos; }

std::vector<std::int64_t> shape_with(const Input& state, std::int64_t tokens) {
  std::vector<std::int64_t> shape;
  for (const Dim& dim : state.type.shape) shape.push_back(dim.value());
  if (grows(state)) shape[2] = tokens;
  return shape;
}

/// The first rows of each head of (1, heads, rows, D), as many as both have; all of two arrays of one shape.
void copy_rows(const Array& from, Array& to) {
  if (from.size() == 0 || to.size() == 0) return;
  const auto bytes_of_head = [](const Array& a) { return a.bytes().size() / static_cast<std::size_t>(a.shape()[1]); };
  const std::size_t step = bytes_of_head(from), to_step = bytes_of_head(to);
  for (std::size_t head = 0; head < static_cast<std::size_t>(from.shape()[1]); ++head)
    std::memcpy(to.mutable_bytes().data() + head * to_step, from.bytes().data() + head * step, std::min(step, to_step));
}

}  // namespace

CachedDecoder::CachedDecoder(const Session& session, const DecoderFiles& model, Options options)
    : CachedDecoder(session, model, resolved(model.config, options), graph_of(model, resolved(model.config, options))) {}

CachedDecoder::CachedDecoder(const Session& session, const DecoderFiles& model, Options options, const Graph& graph)
    : config_(model.config), options_(options), states_(states_of(graph)), executable_(compiled(session, model, graph)) {}

void CachedDecoder::check(std::span<const std::int32_t> ids) const {
  if (ids.empty()) fail("there are no tokens to continue");
  for (std::int32_t id : ids)
    if (id < 0 || id >= config_.vocab_size) fail("token {} is not in the vocabulary (allowed: 0..{})", id, config_.vocab_size - 1);
  const std::size_t length = ids_.size() + ids.size();
  if (static_cast<std::int64_t>(length) > options_.context)
    fail("{} tokens are more than the context holds (allowed: up to {})", length, options_.context);
}

bool CachedDecoder::cache_has_short_factors(std::int64_t length) const {
  return config_.length_of_short_factors() == 0 || length <= config_.length_of_short_factors();
}

std::vector<float> CachedDecoder::append(std::span<const std::int32_t> ids, std::int64_t wanted) {
  check(ids);
  if (wanted < 1 || wanted > static_cast<std::int64_t>(ids.size()))
    fail("logits of the last {} of {} tokens are wanted (allowed: 1..{})", wanted, ids.size(), ids.size());
  ids_.insert(ids_.end(), ids.begin(), ids.end());
  const bool short_factors = cache_has_short_factors(static_cast<std::int64_t>(ids_.size()));
  if (short_factors != short_factors_) held_ = 0;  // keys turned by other factors are of no use
  short_factors_ = short_factors;
  return run(wanted);
}

std::vector<float> CachedDecoder::continue_from(std::span<const std::int32_t> ids) {
  const auto common = static_cast<std::size_t>(std::mismatch(ids_.begin(), ids_.end(), ids.begin(), ids.end()).first - ids_.begin());
  const std::size_t kept = std::min(common, ids.size() - std::min<std::size_t>(ids.size(), 1));  // the last token's logits are wanted
  rewind(static_cast<std::int64_t>(kept));
  return append(ids.subspan(kept));
}

void CachedDecoder::rewind(std::int64_t length) {
  if (length == static_cast<std::int64_t>(ids_.size())) return;
  ids_.resize(static_cast<std::size_t>(length));
  held_ = config_.is_recurrent() ? 0 : length;
}

std::vector<float> CachedDecoder::run(std::int64_t wanted) {
  const auto end = static_cast<std::int64_t>(ids_.size());
  std::vector<float> logits;
  for (std::int64_t at = held_, count = 0; at < end; at += count) {
    count = std::min(options_.chunk, end - at);
    const std::span<const std::int32_t> ids = std::span(ids_).subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(count));
    std::vector<std::int32_t> rows;  // never none
    for (std::int64_t row = std::min(count - 1, std::max<std::int64_t>(end - wanted - at, 0)); row < count; ++row)
      rows.push_back(static_cast<std::int32_t>(row));
    const auto past = static_cast<std::int32_t>(at), context = static_cast<std::int32_t>(end), length = static_cast<std::int32_t>(count);
    std::map<std::string, Feed> feeds{{"input_ids", Feed(ids)}, {"past", Feed(std::span(&past, 1))}, {"rows", Feed(rows)}};
    if (config_.length_of_short_factors() > 0) feeds.emplace("context", Feed(std::span(&context, 1)));
    if (config_.is_recurrent()) feeds.emplace("lengths", Feed(std::span(&length, 1)));
    held_ = 0;  // until the run has ended: it may fail halfway
    const Array result = executable_.run(feeds).at("logits");
    held_ = at + count;
    if (held_ <= end - wanted) continue;
    const auto values = result.values<float>();
    logits.insert(logits.end(), values.begin(), values.end());
  }
  return logits;
}

DecoderCache CachedDecoder::cache() const {
  DecoderCache cache{.ids = {ids_.begin(), ids_.begin() + held_}, .short_factors = short_factors_};
  for (const Input& state : states_) {
    Array& kept = cache.states.emplace(state.name, Array(state.type.dtype, shape_with(state, held_))).first->second;
    copy_rows(executable_.state(state.name), kept);
  }
  return cache;
}

void CachedDecoder::restore(const DecoderCache& cache, std::string_view what) {
  const auto length = static_cast<std::int64_t>(cache.ids.size());
  if (length > options_.context) fail("{}: {} tokens are more than the context holds (allowed: up to {})", what, length, options_.context);
  for (std::int32_t id : cache.ids)
    if (id < 0 || id >= config_.vocab_size)
      fail("{}: token {} is not in the vocabulary (allowed: 0..{})", what, id, config_.vocab_size - 1);
  NamedArrays states;
  for (const Input& state : states_) {
    const auto saved = cache.states.find(state.name);
    if (saved == cache.states.end()) fail("{}: tensor '{}' is missing", what, state.name);
    const auto shape = shape_with(state, length);
    if (saved->second.dtype() != state.type.dtype || saved->second.shape() != shape)
      fail("{}: tensor '{}' is {} (this model's is {})", what, state.name, type_text(saved->second.dtype(), saved->second.shape()),
           type_text(state.type.dtype, shape));
    Array& whole = states.emplace(state.name, Array(state.type.dtype, shape_with(state, options_.context))).first->second;
    copy_rows(saved->second, whole);
  }
  if (cache.states.size() != states_.size()) fail("{}: {} tensors for {} caches of this model", what, cache.states.size(), states_.size());
  for (const auto& [name, array] : states) executable_.set_state(name, array);
  ids_ = cache.ids, held_ = length, short_factors_ = cache.short_factors;
}

std::int32_t greedy_choice(std::span<const float> logits) {
  return static_cast<std::int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

}  // namespace rlx
