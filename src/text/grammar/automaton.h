#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "text/grammar/grammar.h"

namespace rlx::grammar {

/// A grammar as an automaton over bytes that is built where it is used. A state is a set of stacks: of what each way to read the bytes so
/// far still expects. Equal states are one, so that their steps, and what is known about them, are found once.
class Automaton {
 public:
  using State = std::uint32_t;

  explicit Automaton(std::shared_ptr<const Grammar> grammar);

  State start() const { return start_; }
  /// The state behind a byte; `dead` where no reading goes on. Throws Error for a grammar with more than 4096 readings at once.
  State step(State state, unsigned char byte) {
    const State known = states_[state]->next[byte];
    return known != unknown ? known : find_step(state, byte);
  }
  /// Whether the bytes so far are a whole text.
  bool accepts(State state) const { return states_[state]->accepts; }
  std::size_t size() const { return states_.size(); }
  /// Drops all states but this one and the start; returns its new name. They are found again where they are needed.
  State forget_others(State kept);

  static constexpr State dead = 0;

 private:
  static constexpr State unknown = ~State{0};
  static constexpr std::uint32_t bottom = 0;          // the empty stack
  static constexpr std::uint32_t deepest = 1024;      // deeper readings are dropped: a text cannot nest further
  static constexpr std::size_t most_readings = 4096;  // of one state
  static constexpr std::size_t most_nodes = 1 << 22, most_states = 1 << 18, most_stacks = 1 << 25;  // a few hundred MB

  /// What is expected: the elements from `at` on, then those of `below`.
  struct Node {
    std::uint32_t at, below, depth;
  };
  struct StateData {
    std::vector<std::uint32_t> stacks;  // nodes that expect bytes, ascending
    bool accepts = false;
    std::array<State, 256> next;
  };
  /// Stacks of a state that is being built, and the places that were looked at.
  struct Building {
    std::vector<std::uint32_t> stacks;
    std::map<std::pair<std::uint32_t, std::uint32_t>, bool> seen;
    bool accepts = false;
  };

  State find_step(State state, unsigned char byte);
  State intern(std::vector<std::uint32_t> stacks, bool accepts);
  std::uint32_t node(std::uint32_t at, std::uint32_t below);
  void expand(std::uint32_t at, std::uint32_t below, Building& into);

  std::shared_ptr<const Grammar> grammar_;
  std::vector<Node> nodes_;
  std::unordered_map<std::uint64_t, std::uint32_t> known_nodes_;
  std::vector<std::unique_ptr<StateData>> states_;
  std::map<std::pair<std::vector<std::uint32_t>, bool>, State> known_states_;
  State start_ = dead;
  std::size_t stacks_held_ = 0;
};

}  // namespace rlx::grammar
