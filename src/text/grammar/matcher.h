#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text/grammar/automaton.h"
#include "text/grammar/token_bytes.h"

namespace rlx::grammar {

/// Follows one text through a grammar, token by token, and says which tokens may come next.
class Matcher {
 public:
  Matcher(std::shared_ptr<const Grammar> grammar, std::shared_ptr<const TokenBytes> tokens);

  /// Bit `id % 64` of word `id / 64` for each token that may come next, which includes the end tokens where the text is whole. Valid until
  /// the matcher is used again. What was found for a state is kept, so that the same place in a text costs nothing.
  std::span<const std::uint64_t> allowed();
  /// Throws Error for a token that is not allowed, and leaves the matcher as it was.
  void accept(std::int32_t id);
  bool allows(std::int32_t id);

  /// Whether the text so far is whole.
  bool can_end() const { return automaton_->accepts(state_); }
  /// Whether it is whole and nothing but its end may come.
  bool is_complete();
  /// Whether an end token was accepted.
  bool ended() const { return ended_; }

 private:
  using Mask = std::vector<std::uint64_t>;

  Automaton::State walk(std::string_view bytes);
  Mask find_mask();
  void forget_if_large();

  std::shared_ptr<const Grammar> grammar_;
  std::shared_ptr<const TokenBytes> tokens_;
  std::unique_ptr<Automaton> automaton_;
  Automaton::State state_;
  std::unordered_map<Automaton::State, Mask> masks_;
  std::vector<Automaton::State> path_;  // of the token that is looked at
  bool ended_ = false;
};

}  // namespace rlx::grammar
