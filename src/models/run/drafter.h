#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "models/run/caches/cached_decoder.h"

namespace rlx {

/// Guesses the tokens of an answer before the model computes them (speculative decoding, Leviathan et al. 2023).
class Drafter {
 public:
  virtual ~Drafter() = default;
  /// At most `most` tokens that may follow `ids`; perhaps none.
  virtual std::vector<std::int32_t> guess(std::span<const std::int32_t> ids, std::size_t most) = 0;
};

/// What followed when the last tokens occurred before (prompt lookup, Saxena 2023).
class PromptLookup : public Drafter {
 public:
  std::vector<std::int32_t> guess(std::span<const std::int32_t> ids, std::size_t most) override;
};

/// What a smaller model finds likeliest.
class DraftModel : public Drafter {
 public:
  /// For a model of `vocabulary` tokens, which may be padded to another number. The decoder must outlive it. No guesses where `cancelled`,
  /// which may be empty, ends the reading of a long prompt.
  DraftModel(CachedDecoder& decoder, std::int64_t vocabulary, std::function<bool()> cancelled);
  std::vector<std::int32_t> guess(std::span<const std::int32_t> ids, std::size_t most) override;

 private:
  CachedDecoder& decoder_;
  std::int64_t vocabulary_;  // that both have
  std::function<bool()> cancelled_;
};

}  // namespace rlx
