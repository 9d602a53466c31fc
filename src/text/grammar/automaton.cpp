#include "text/grammar/automaton.h"

#include <algorithm>

#include "rlx/error.h"

namespace rlx::grammar {

Automaton::Automaton(std::shared_ptr<const Grammar> grammar) : grammar_(std::move(grammar)) {
  nodes_.push_back({0, bottom, 0});
  intern({}, false);  // dead
  Building first;
  for (std::uint32_t at : grammar_->rules[grammar_->root].alternatives) expand(at, bottom, first);
  start_ = intern(std::move(first.stacks), first.accepts);
}

std::uint32_t Automaton::node(std::uint32_t at, std::uint32_t below) {
  const auto [known, is_new] = known_nodes_.emplace(std::uint64_t{at} << 32 | below, static_cast<std::uint32_t>(nodes_.size()));
  if (is_new) {
    if (nodes_.size() >= most_nodes) fail("grammar: the text needs more than {} different stacks", most_nodes);
    nodes_.push_back({at, below, nodes_[below].depth + 1});
  }
  return known->second;
}

/// Adds the stacks that expect bytes when what stands at `at` comes next. A last rule of an alternative leaves nothing to come back to, so
/// repetitions do not grow stacks. Works off a list: alternatives may lead far.
void Automaton::expand(std::uint32_t at, std::uint32_t below, Building& into) {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> open = {{at, below}};
  while (!open.empty()) {
    const auto [place, rest] = open.back();
    open.pop_back();
    if (!into.seen.emplace(std::pair(place, rest), true).second) continue;
    if (into.seen.size() > 16 * most_readings) fail("grammar: more than {} readings of one text", most_readings);
    const Element element = grammar_->elements[place];
    if (element.kind == Element::Kind::bytes) {
      into.stacks.push_back(node(place, rest));
    } else if (element.kind == Element::Kind::rule) {
      const bool last = grammar_->elements[place + 1].kind == Element::Kind::end;
      if (!last && nodes_[rest].depth >= deepest) continue;
      const std::uint32_t behind = last ? rest : node(place + 1, rest);
      for (std::uint32_t alternative : grammar_->rules[element.index].alternatives) open.emplace_back(alternative, behind);
    } else if (rest == bottom) {
      into.accepts = true;
    } else {
      open.emplace_back(nodes_[rest].at, nodes_[rest].below);
    }
  }
  if (into.stacks.size() > most_readings) fail("grammar: more than {} readings of one text", most_readings);
}

Automaton::State Automaton::intern(std::vector<std::uint32_t> stacks, bool accepts) {
  std::sort(stacks.begin(), stacks.end());
  stacks.erase(std::unique(stacks.begin(), stacks.end()), stacks.end());
  const auto [known, is_new] = known_states_.emplace(std::pair(stacks, accepts), static_cast<State>(states_.size()));
  if (is_new) {
    stacks_held_ += stacks.size();
    if (states_.size() >= most_states || stacks_held_ > most_stacks)
      fail("grammar: too ambiguous: more than {} states at once", states_.size());
    auto data = std::make_unique<StateData>();
    data->stacks = std::move(stacks), data->accepts = accepts;
    data->next.fill(known->second == dead ? dead : unknown);
    states_.push_back(std::move(data));
  }
  return known->second;
}

Automaton::State Automaton::forget_others(State kept) {
  const StateData current = *states_[kept], first = *states_[start_];
  states_.clear(), known_states_.clear(), stacks_held_ = 0;
  intern({}, false);  // dead
  start_ = intern(first.stacks, first.accepts);
  return intern(current.stacks, current.accepts);
}

Automaton::State Automaton::find_step(State state, unsigned char byte) {
  Building built;
  for (std::uint32_t stack : states_[state]->stacks) {
    const Node expected = nodes_[stack];
    if (grammar_->sets[grammar_->elements[expected.at].index].test(byte)) expand(expected.at + 1, expected.below, built);
  }
  const State next = intern(std::move(built.stacks), built.accepts);
  states_[state]->next[byte] = next;
  return next;
}

}  // namespace rlx::grammar
