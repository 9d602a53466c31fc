#include "text/grammar/matcher.h"

#include <algorithm>
#include <utility>

#include "base/names.h"
#include "rlx/error.h"

namespace rlx::grammar {
namespace {

constexpr std::size_t most_mask_words = std::size_t{1} << 22;  // 32 MiB
constexpr std::size_t most_states = std::size_t{1} << 15;      // of about 1 KiB

}  // namespace

Matcher::Matcher(std::shared_ptr<const Grammar> grammar, std::shared_ptr<const TokenBytes> tokens)
    : grammar_(std::move(grammar)),
      tokens_(std::move(tokens)),
      automaton_(std::make_unique<Automaton>(grammar_)),
      state_(automaton_->start()) {}

Automaton::State Matcher::walk(std::string_view bytes) {
  Automaton::State state = state_;
  for (char byte : bytes) state = automaton_->step(state, static_cast<unsigned char>(byte));
  return state;
}

bool Matcher::allows(std::int32_t id) {
  if (ended_ || id < 0 || static_cast<std::size_t>(id) >= tokens_->size()) return false;
  if (tokens_->is_end(id)) return can_end();
  const std::string_view bytes = tokens_->bytes_of(id);
  return !bytes.empty() && walk(bytes) != Automaton::dead;
}

void Matcher::accept(std::int32_t id) {
  if (!allows(id)) {
    const bool known = id >= 0 && static_cast<std::size_t>(id) < tokens_->size();
    fail("grammar: token {} ({}) may not come next", id, quote_name(known ? tokens_->bytes_of(id) : std::string_view()));
  }
  if (tokens_->is_end(id)) ended_ = true;
  else state_ = walk(tokens_->bytes_of(id));
}

/// Tokens in the order of their bytes: the states behind what a token shares with the one before are known, and where those bytes led
/// nowhere the token is skipped.
Matcher::Mask Matcher::find_mask() {
  Mask mask((tokens_->size() + 63) / 64, 0);
  const auto allow = [&](std::int32_t id) { mask[static_cast<std::size_t>(id) / 64] |= std::uint64_t{1} << (id % 64); };
  path_.assign(1, state_);
  for (const TokenBytes::Entry& entry : tokens_->entries()) {
    if (entry.shared + 1 < path_.size()) path_.resize(entry.shared + 1);
    if (path_.back() == Automaton::dead) continue;
    const std::string_view bytes = tokens_->bytes(entry);
    while (path_.size() <= bytes.size() && path_.back() != Automaton::dead)
      path_.push_back(automaton_->step(path_.back(), static_cast<unsigned char>(bytes[path_.size() - 1])));
    if (path_.back() != Automaton::dead && !tokens_->is_end(entry.id)) allow(entry.id);
  }
  if (can_end())
    for (std::int32_t id : tokens_->ends()) allow(id);
  return mask;
}

/// States and masks are found again where they are needed.
void Matcher::forget_if_large() {
  if (automaton_->size() > most_states) {
    state_ = automaton_->forget_others(state_);
    masks_.clear();
  }
  const std::size_t words = (tokens_->size() + 63) / 64;
  if ((masks_.size() + 1) * words > most_mask_words) masks_.clear();
}

std::span<const std::uint64_t> Matcher::allowed() {
  if (ended_) {
    masks_[Automaton::dead].assign((tokens_->size() + 63) / 64, 0);
    return masks_[Automaton::dead];
  }
  forget_if_large();
  if (const auto known = masks_.find(state_); known != masks_.end()) return known->second;
  Mask mask = find_mask();
  return masks_.insert_or_assign(state_, std::move(mask)).first->second;
}

bool Matcher::is_complete() {
  if (ended_ || !can_end()) return ended_;
  const auto mask = allowed();
  Mask others(mask.begin(), mask.end());
  for (std::int32_t id : tokens_->ends()) others[static_cast<std::size_t>(id) / 64] &= ~(std::uint64_t{1} << (id % 64));
  return std::all_of(others.begin(), others.end(), [](std::uint64_t word) { return word == 0; });
}

}  // namespace rlx::grammar
