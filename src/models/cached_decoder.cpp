#include "models/cached_decoder.h"

#include <algorithm>

namespace rlx {
namespace {

CachedDecoder::Options resolved(const DecoderConfig& config, CachedDecoder::Options options) {
  if (!config.causal) fail("this model is an encoder: it makes no text (rlx verify runs it)");
  if (options.context == 0) options.context = config.max_positions;
  options.chunk = std::min(options.chunk, options.context);
  return options;
}

Executable compiled(const Session& session, const DecoderFiles& model, const CachedDecoder::Options& options) {
  const Graph graph = decoder_graph(
      model.config, {.capacity = options.context, .chunk = options.chunk, .storage = stored_types(model.checkpoint, model.names)});
  const NamedArrays weights = model.weights(graph);  // before compiling, which takes longer: they may not fit
  Executable executable = session.compile(graph);
  executable.set_params(weights);
  return executable;
}

}  // namespace

CachedDecoder::CachedDecoder(const Session& session, const DecoderFiles& model, Options options)
    : config_(model.config), options_(resolved(config_, options)), executable_(compiled(session, model, options_)) {}

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

std::vector<float> CachedDecoder::append(std::span<const std::int32_t> ids) {
  check(ids);
  ids_.insert(ids_.end(), ids.begin(), ids.end());
  const bool short_factors = cache_has_short_factors(static_cast<std::int64_t>(ids_.size()));
  if (short_factors != short_factors_) held_ = 0;  // keys turned by other factors are of no use
  short_factors_ = short_factors;
  return run(held_);
}

void CachedDecoder::rewind(std::int64_t length) {
  if (length == static_cast<std::int64_t>(ids_.size())) return;
  ids_.resize(static_cast<std::size_t>(length));
  held_ = config_.is_recurrent() ? 0 : length;
}

std::vector<float> CachedDecoder::run(std::int64_t begin) {
  const auto end = static_cast<std::int64_t>(ids_.size());
  std::vector<float> logits;
  for (std::int64_t at = begin; at < end; at += options_.chunk) {
    const std::int64_t count = std::min(options_.chunk, end - at);
    const std::span<const std::int32_t> ids = std::span(ids_).subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(count));
    const auto past = static_cast<std::int32_t>(at), row = static_cast<std::int32_t>(count - 1), context = static_cast<std::int32_t>(end);
    const auto length = static_cast<std::int32_t>(count);
    std::map<std::string, Feed> feeds{{"input_ids", Feed(ids)}, {"past", Feed(std::span(&past, 1))}, {"rows", Feed(std::span(&row, 1))}};
    if (config_.length_of_short_factors() > 0) feeds.emplace("context", Feed(std::span(&context, 1)));
    if (config_.is_recurrent()) feeds.emplace("lengths", Feed(std::span(&length, 1)));
    held_ = 0;  // until the run has ended: it may fail halfway
    const Array result = executable_.run(feeds).at("logits");
    const auto values = result.values<float>();
    logits.assign(values.begin(), values.end());
    held_ = at + count;
  }
  return logits;
}

std::int32_t greedy_choice(std::span<const float> logits) {
  return static_cast<std::int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

}  // namespace rlx
