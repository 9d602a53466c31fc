#include "models/run/caches/cached_t5.h"

#include "models/layers/t5.h"
#include "models/weights/weights.h"

namespace rlx {
namespace {

/// Of the weights of both parts those that the graph has.
Executable compiled(const Session& session, const Graph& graph, const NamedArrays& weights) {
  Executable executable = session.compile(graph);
  for (const auto& [input, value] : graph.inputs())
    if (input.kind == InputKind::param) executable.set_param(input.name, weights.at(input.name));
  return executable;
}

}  // namespace

NamedArrays t5_weights(const T5Files& model, const WeightStorage& storage, int threads) {
  const Graph both = t5_graph(model.config, {.batch = 1, .length = 1, .decoder_length = 1}, storage);
  return load_weights(both, model.checkpoint, model.names, threads);
}

CachedT5::CachedT5(const Session& session, const T5Files& model, std::int64_t context)
    : CachedT5(session, model, context, stored_types(model.checkpoint, model.names),
               t5_weights(model, stored_types(model.checkpoint, model.names), session.threads())) {}

CachedT5::CachedT5(const Session& session, const T5Files& model, std::int64_t context, const WeightStorage& storage,
                   const NamedArrays& weights)
    : config_(model.config),
      context_(context),
      encoder_(compiled(session, t5_encoder_graph(config_, context, storage), weights)),
      decoder_(compiled(session, t5_decoder_graph(config_, {.length = context, .capacity = context}, storage), weights)) {}

void CachedT5::check(std::span<const std::int32_t> ids, std::size_t held) const {
  if (ids.empty()) fail("there are no tokens to answer");
  check_ids(ids, config_.vocab_size);
  if (static_cast<std::int64_t>(held + ids.size()) > context_)
    fail("{} tokens are more than the context holds (allowed: up to {})", held + ids.size(), context_);
}

Array CachedT5::begin(std::span<const std::int32_t> prompt, const std::function<bool()>& cancelled) {
  check(prompt, 0);
  ids_.clear();
  if (cancelled && cancelled()) return {};
  const Outputs encoded = encoder_.run({{"input_ids", Feed(prompt)}});
  for (const auto& [name, array] : encoded) encoded_.insert_or_assign(name, Feed(array));
  return read(start_of(prompt), 1, {});
}

Array CachedT5::read(std::span<const std::int32_t> ids, std::int64_t wanted, const std::function<bool()>& /*cancelled*/) {
  check(ids, ids_.size());
  const auto past = static_cast<std::int32_t>(ids_.size());
  std::map<std::string, Feed> feeds = encoded_;
  feeds.emplace("input_ids", Feed(ids)), feeds.emplace("past", Feed(std::span(&past, 1)));
  Array logits = decoder_.run(feeds).at("logits");
  ids_.insert(ids_.end(), ids.begin(), ids.end());
  if (wanted == std::ssize(ids)) return logits;
  return Array::of({1, wanted, config_.vocab_size}, logits.values<float>().last(static_cast<std::size_t>(wanted * config_.vocab_size)));
}

}  // namespace rlx
