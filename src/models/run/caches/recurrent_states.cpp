#include "models/run/caches/recurrent_states.h"

#include <algorithm>
#include <cstring>

namespace rlx {
namespace {

constexpr RecurrentStates::Sequence nobody = -1;

/// The state of so many sequences.
std::vector<std::int64_t> shape_of(const Input& state, std::size_t sequences) {
  std::vector<std::int64_t> shape{static_cast<std::int64_t>(sequences)};
  for (std::size_t axis = 1; axis < state.type.shape.size(); ++axis) shape.push_back(state.type.shape[axis].value());
  return shape;
}

}  // namespace

RecurrentStates::RecurrentStates(const Graph& graph) {
  for (const auto& [input, value] : graph.inputs())
    if (input.kind == InputKind::state && !input.type.is_static()) states_.push_back(input);
}

/// None where the sequence has not run.
RecurrentStates::Rows RecurrentStates::rows(const DividedExecutable& executable, Sequence sequence) const {
  if (const auto aside = aside_.find(sequence); aside != aside_.end()) return aside->second;
  const auto place = static_cast<std::size_t>(std::ranges::find(running_, sequence) - running_.begin());
  Rows rows;
  for (const Input& state : place < running_.size() ? states_ : std::vector<Input>{}) {
    const Array all = executable.state(state.name);
    const std::size_t bytes = all.bytes().size() / running_.size();
    rows.emplace_back(all.dtype(), shape_of(state, 1), all.bytes().subspan(place * bytes, bytes), all.owner());
  }
  return rows;
}

Array RecurrentStates::joined(std::size_t state, const std::vector<Sequence>& sequences) const {
  Array all(states_[state].type.dtype, shape_of(states_[state], sequences.size()));
  const std::size_t bytes = all.bytes().size() / sequences.size();
  for (std::size_t i = 0; i < sequences.size(); ++i)
    if (const auto aside = aside_.find(sequences[i]); aside != aside_.end())
      std::memcpy(all.mutable_bytes().data() + i * bytes, aside->second[state].bytes().data(), bytes);
  return all;
}

void RecurrentStates::bring(DividedExecutable& executable, const std::vector<Sequence>& sequences) {
  if (states_.empty() || sequences == running_) return;
  for (const Sequence each : running_)
    if (each != nobody) aside_[each] = rows(executable, each);
  for (std::size_t i = 0; i < states_.size(); ++i) executable.set_state(states_[i].name, joined(i, sequences));
  running_ = sequences;
  for (const Sequence each : sequences) aside_.erase(each);
}

void RecurrentStates::copy(const DividedExecutable& executable, Sequence from, Sequence to) {
  if (Rows shared = rows(executable, from); !shared.empty()) aside_[to] = std::move(shared);
}

void RecurrentStates::remove(Sequence sequence) {
  aside_.erase(sequence);
  std::ranges::replace(running_, sequence, nobody);
}

}  // namespace rlx
