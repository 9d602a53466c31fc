#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "models/layers/flow.h"
#include "models/run/caches/token_predictor.h"
#include "models/weights/t5_files.h"
#include "rlx/session.h"

namespace rlx {

/// The weights of both parts.
NamedArrays t5_weights(const T5Files& model, const WeightStorage& storage, int threads);

/// A compiled T5 with one prompt, which its encoder read once, and with the cache of the answer to it.
class CachedT5 : public TokenPredictor {
 public:
  /// Compiles the model and loads its weights; `context` are the tokens that fit, as many of a prompt as of its answer. Throws Error for
  /// weights that do not fit the config.
  CachedT5(const Session& session, const T5Files& model, std::int64_t context);

  std::int64_t vocab_size() const override { return config_.vocab_size; }
  std::int64_t context() const override { return context_; }
  /// Of the answer, behind the token that begins it.
  std::span<const std::int32_t> ids() const override { return ids_; }
  std::vector<std::int32_t> start_of(std::span<const std::int32_t>) const override { return {config_.decoder_start_token_id}; }
  Array begin(std::span<const std::int32_t> prompt, const std::function<bool()>& cancelled) override;
  Array read(std::span<const std::int32_t> ids, std::int64_t wanted, const std::function<bool()>& cancelled) override;
  void rewind(std::int64_t length) override { ids_.resize(static_cast<std::size_t>(length)); }

 private:
  CachedT5(const Session& session, const T5Files& model, std::int64_t context, const WeightStorage& storage, const NamedArrays& weights);
  /// `held` tokens are there already.
  void check(std::span<const std::int32_t> ids, std::size_t held) const;

  T5Config config_;
  std::int64_t context_;
  Executable encoder_, decoder_;
  std::map<std::string, Feed> encoded_;  // what cross attention sees of the prompt, by the decoder's inputs
  std::vector<std::int32_t> ids_;
};

}  // namespace rlx
