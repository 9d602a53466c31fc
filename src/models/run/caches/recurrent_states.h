#pragma once
#include <cstdint>
#include <map>
#include <vector>

#include "models/run/caches/divided_executable.h"

namespace rlx {

/// The states of recurrent layers, of many sequences: a graph has them as (N, ...), for the N sequences of a run. They stay in the
/// executable while the same sequences run. A run gives states new memory, so that sequences may share what they do not change.
class RecurrentStates {
 public:
  using Sequence = std::int64_t;

  /// Of the states of a graph whose first axis has no fixed size.
  explicit RecurrentStates(const Graph& graph);

  /// Lays the states of these sequences into the executable, in this order; zeros for one that has none yet.
  void bring(DividedExecutable& executable, const std::vector<Sequence>& sequences);
  void copy(const DividedExecutable& executable, Sequence from, Sequence to);
  void remove(Sequence sequence);

 private:
  using Rows = std::vector<Array>;  // by state, (1, ...)
  Rows rows(const DividedExecutable& executable, Sequence sequence) const;
  Array joined(std::size_t state, const std::vector<Sequence>& sequences) const;

  std::vector<Input> states_;
  std::vector<Sequence> running_;  // whose states the executable holds, in their order
  std::map<Sequence, Rows> aside_;
};

}  // namespace rlx
