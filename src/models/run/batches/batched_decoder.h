#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "models/run/batches/batch_scheduler.h"
#include "models/run/caches/page_pool.h"
#include "models/run/caches/recurrent_states.h"
#include "models/weights/decoder_files.h"
#include "rlx/session.h"

namespace rlx {

/// A compiled decoder with the caches of many sequences of tokens, of unlike lengths, which run together without padding. Their caches lie
/// in pages, which copies of a sequence share; the states of recurrent layers lie beside them. Not for several threads at a time.
class BatchedDecoder {
 public:
  struct Options {
    std::int64_t context = 0;  // most tokens of a sequence; 0: as many as the model was made for
    std::int64_t chunk = 512;  // most tokens in one run, of all sequences
    std::int64_t tokens = 0;   // that the caches hold in all, in pages of page_tokens; 0: as many as `context`
    CacheType cache = CacheType::f32;
    bool exact = false;  // tokens have the same bits one by one, a few at a time and many
    std::vector<LayersOn> layers_on = {};
  };
  using Sequence = RecurrentStates::Sequence;
  struct Tokens {
    Sequence sequence;
    std::span<const std::int32_t> ids;
  };

  /// Logits behind the last tokens of sequences, where the runs left them.
  struct Logits {
    struct Place {
      std::size_t run;
      std::int64_t row;
    };
    std::vector<Array> runs;    // (1, rows, vocab_size) each
    std::vector<Place> places;  // of each sequence, in the order in which they were asked for

    bool empty() const { return places.empty(); }
    /// (vocab_size), on the host.
    std::span<const float> operator[](std::size_t sequence) const;
  };

  /// Compiles the model and loads its weights. Throws Error for weights that do not fit the config, and for an encoder.
  BatchedDecoder(const Session& session, const DecoderFiles& model, Options options);

  /// A new sequence, without tokens.
  Sequence add();
  /// A new sequence with the tokens of another. It shares the pages that are full and copies the one behind them. Throws Error where no
  /// page is left for that.
  Sequence copy(Sequence from);
  /// Gives the pages back that no other sequence shares. Throws Error, as all others, for a sequence that does not exist.
  void remove(Sequence sequence);
  /// Forgets all but the first `length` tokens; length <= ids(sequence).size(). A recurrent model then reads those again with the next
  /// tokens.
  void rewind(Sequence sequence, std::int64_t length);
  std::span<const std::int32_t> ids(Sequence sequence) const { return at(sequence).ids; }
  std::int64_t context() const { return options_.context; }
  const DecoderConfig& config() const { return config_; }

  /// Appends tokens to sequences, each of which is named once, in as few runs as there can be, and gives the logits behind the last token
  /// of each, in the order of `tokens`. A run of a recurrent model has as many tokens of each sequence that takes part.
  /// Throws Error for no tokens, an id outside the vocabulary, more tokens than the context or the pages hold; then nothing is appended.
  /// Where `cancelled` says so before a run, the sequences hold what was read so far, and there are no logits.
  Logits append(std::span<const Tokens> tokens, const std::function<bool()>& cancelled = {});

 private:
  struct State {
    std::vector<std::int32_t> ids;
    std::vector<PagePool::List> pages;  // by pool
    std::int64_t held = 0;              // tokens that the pages and states stand for
    bool short_factors = true;          // what they were computed with; of longrope
  };

  BatchedDecoder(const Session& session, const DecoderFiles& model, Options options, const Graph& graph);
  const State& at(Sequence sequence) const;
  State& at(Sequence sequence) { return const_cast<State&>(std::as_const(*this).at(sequence)); }
  void check(std::span<const Tokens> tokens) const;
  std::int64_t reachable(const State& state, std::int64_t length) const;
  void forget(State& state, std::int64_t held);
  State& extended(const Tokens& tokens);
  using Feeds = std::map<std::string, Feed>;
  std::int64_t most_each() const;
  Feeds feeds_of(std::span<const BatchPiece> run) const;
  void feed_pages(std::span<const BatchPiece> run, std::int64_t length, std::size_t pool, Feeds& feeds) const;
  void run(std::span<const BatchPiece> pieces, Logits& logits);

  DecoderConfig config_;
  Options options_;
  RecurrentStates recurrent_;
  std::vector<PagePool> pools_;
  std::vector<std::vector<std::string>> in_pages_;  // by pool: names of the states that lie in its pages
  DividedExecutable executable_;
  std::map<Sequence, State> sequences_;
  Sequence next_ = 0;
};

}  // namespace rlx
