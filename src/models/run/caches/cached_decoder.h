#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <string_view>
#include <vector>

#include "models/run/caches/divided_executable.h"
#include "models/run/caches/token_predictor.h"
#include "models/weights/decoder_files.h"
#include "rlx/io.h"
#include "rlx/session.h"

namespace rlx {

/// What caches hold: of states that grow with the tokens (keys, values) what belongs to the tokens, (1, heads, ids.size(), D), or to the
/// last of them, as many at least as the layer's window.
struct DecoderCache {
  std::vector<std::int32_t> ids = {};
  bool short_factors = true;  // what keys were turned with; of longrope
  NamedArrays states = {};
};

/// A compiled decoder with the cache of one sequence of tokens. Not for several threads at a time.
class CachedDecoder : public TokenPredictor {
 public:
  struct Options {
    std::int64_t context = 0;  // tokens that the cache holds; 0: as many as the model was made for
    std::int64_t chunk = 512;  // most tokens in one run
    CacheType cache = CacheType::f32;
    bool exact = false;  // tokens have the same bits one by one, a few at a time and many
    std::vector<LayersOn> layers_on = {};
  };

  /// Compiles the model and loads its weights. Throws Error for weights that do not fit the config.
  CachedDecoder(const Session& session, const DecoderFiles& model, Options options);

  /// The tokens that the cache holds.
  std::span<const std::int32_t> ids() const override { return ids_; }
  std::int64_t context() const override { return options_.context; }
  std::int64_t vocab_size() const override { return config_.vocab_size; }
  /// The compiled model, whose states are the caches; its first part, where it is divided.
  const Executable& executable() const { return executable_.first(); }
  /// Of each device that has a part of it.
  const std::vector<MemoryNeed>& memory_needs() const { return executable_.memory_needs(); }
  /// What a run reads that appends `count` tokens behind so many, for those who look at the program: arrays of its own.
  std::map<std::string, Feed> inputs(std::int64_t past, std::int64_t count) const;
  CacheType cache_type() const { return options_.cache; }
  bool is_exact() const { return options_.exact; }
  const DecoderConfig& config() const { return config_; }

  Array read(std::span<const std::int32_t> ids, std::int64_t wanted, const std::function<bool()>& cancelled) override;
  std::vector<std::int32_t> start_of(std::span<const std::int32_t> prompt) const override { return {prompt.begin(), prompt.end()}; }
  /// Makes the cache hold these tokens and no others, computing only what it does not hold; the logits behind the last. Throws as append.
  Array begin(std::span<const std::int32_t> prompt, const std::function<bool()>& cancelled) override;
  /// Forgets all but the first `length` tokens; length <= ids().size(). A recurrent model then reads those again, but for the ones that
  /// `mark` stands behind, and so does one whose layers keep windows only, where more are forgotten than Options::chunk.
  void rewind(std::int64_t length) override;
  /// Remembers the states of a recurrent model, in place of those of the last mark: `rewind` to these tokens and any more goes back to
  /// them.
  void mark() override;
  /// Tokens that are read again with the next ones.
  std::int64_t unread() const override { return static_cast<std::int64_t>(ids_.size()) - held_; }
  std::int64_t most_together() const override;

  /// Of as many tokens as the caches stand for.
  DecoderCache cache() const;
  /// Replaces the cache. Throws Error "{what}: ..." for one that is not of such a decoder or does not fit; then nothing changes.
  void restore(const DecoderCache& cache, std::string_view what);

 private:
  CachedDecoder(const Session& session, const DecoderFiles& model, Options options, const Graph& graph);
  void check(std::span<const std::int32_t> ids, std::int64_t wanted) const;
  std::map<std::string, Feed> feeds(std::span<const std::int32_t> ids, std::int64_t past, std::int64_t context,
                                    std::span<const std::int32_t> rows) const;
  bool cache_has_short_factors(std::int64_t length) const;
  /// Runs the tokens that the caches do not stand for; the logits behind the last `wanted` tokens. Where it is cancelled it forgets those
  /// that have not run, and gives none.
  Array run(std::int64_t wanted, const std::function<bool()>& cancelled);
  /// Has huge pages hold so many tokens of the caches, where these fill them.
  void back(std::int64_t tokens);
  std::int64_t least_behind(std::int64_t held) const;
  std::int64_t fewest_saved(const Input& state, std::int64_t tokens) const;
  Array restored(const Input& state, const Array& saved, std::int64_t length, std::string_view what) const;
  /// Takes a recurrent model's states back, to at most `length` tokens; for how many they then stand.
  std::int64_t back_to_mark(std::int64_t length);

  DecoderConfig config_;
  Options options_;
  std::map<std::int64_t, std::int64_t> rings_ = {};  // pages of the rings, by window
  std::vector<Input> states_;                        // the caches
  DividedExecutable executable_;
  std::vector<std::int32_t> ids_;
  std::int64_t held_ = 0;      // of them, tokens that the caches stand for
  std::int64_t backed_ = 0;    // tokens of the last call of `back`, and some more
  std::int64_t least_ = 0;     // to fewer of them, but for none, the caches cannot be taken back: rings have lost what those see
  bool short_factors_ = true;  // what the cache was computed with; of longrope
  std::int64_t marked_ = 0;    // tokens that the marked states stand for
  NamedArrays marked_states_;  // of recurrent layers
};

/// The smallest id among the largest logits.
std::int32_t greedy_choice(std::span<const float> logits);

}  // namespace rlx
