#pragma once
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <vector>

#include "rlx/array.h"
#include "rlx/error.h"

namespace rlx {

/// Throws Error for an id outside a vocabulary of that size.
inline void check_ids(std::span<const std::int32_t> ids, std::int64_t vocabulary) {
  for (const std::int32_t id : ids)
    if (id < 0 || id >= vocabulary) fail("token {} is not in the vocabulary (allowed: 0..{})", id, vocabulary - 1);
}

/// Says how likely each token comes next, and keeps what it computed of those before. Not for several threads at a time.
class TokenPredictor {
 public:
  virtual ~TokenPredictor() = default;

  virtual std::int64_t vocab_size() const = 0;
  /// Tokens that fit.
  virtual std::int64_t context() const = 0;
  /// The tokens that it holds.
  virtual std::span<const std::int32_t> ids() const = 0;
  /// What an answer to a prompt goes on from: the prompt itself, or what stands before answers where these are texts of their own.
  virtual std::vector<std::int32_t> start_of(std::span<const std::int32_t> prompt) const = 0;
  /// Makes it hold what an answer to the prompt goes on from; the logits behind that, (1, 1, vocab_size), where the device left them.
  /// Throws Error for no tokens, for an id outside the vocabulary, and for more tokens than fit. Where `cancelled`, which may be empty,
  /// says so between two runs, it holds what was read so far, and there are no logits.
  virtual Array begin(std::span<const std::int32_t> prompt, const std::function<bool()>& cancelled) = 0;
  /// Appends tokens and gives the logits behind the last `wanted` of them, 1..ids.size(): (1, wanted, vocab_size), as `begin` does. Throws
  /// Error as `begin`; then nothing is appended. `cancelled` as there.
  virtual Array read(std::span<const std::int32_t> ids, std::int64_t wanted, const std::function<bool()>& cancelled) = 0;
  /// The same, on the host: (wanted, vocab_size).
  std::vector<float> append(std::span<const std::int32_t> ids, std::int64_t wanted = 1, const std::function<bool()>& cancelled = {}) {
    return read(ids, wanted, cancelled).floats();
  }
  /// Forgets all but the first `length` tokens; length <= ids().size().
  virtual void rewind(std::int64_t length) = 0;
  /// Says that the tokens behind those held now may be forgotten again.
  virtual void mark() {}
  /// Tokens that are computed again with the next ones.
  virtual std::int64_t unread() const { return 0; }
  /// Tokens that `append` takes at a time with the results that they have one by one, to the bit; 1 and more.
  virtual std::int64_t most_together() const { return std::numeric_limits<std::int64_t>::max(); }
};

}  // namespace rlx
