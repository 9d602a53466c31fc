// The parameters and states that an executable keeps from run to run.
#include "runtime/kept_inputs.h"

#include <algorithm>
#include <cstring>

#include "base/names.h"
#include "ir/array_type.h"
#include "ir/graph_data.h"
#include "runtime/feeds.h"

namespace rlx {
namespace {

Array zeros(const Storage& storage, const Input& state) {
  if (!state.type.is_static()) fail("state '{}': {} has no size before it is set", state.name, state.type.to_string());
  return storage.zeros(state.type.dtype, static_shape(state.type));
}

/// Throws unless every value is for a parameter or state, and every unbound parameter has one.
void check_names(const Executable::State& state, const std::map<std::string, Array>& values) {
  const Graph& graph = state.source;
  const auto parameters = parameters_of(state);
  std::vector<std::string> unbound;
  for (std::size_t i = 0; i < graph.inputs().size(); ++i)
    if (const Input& input = graph.inputs()[i].first; is_missing(*parameters, i, input)) unbound.push_back(input.name);
  std::vector<std::string_view> known;
  for (const auto& [input, value] : graph.inputs())
    if (input.kind != InputKind::input) known.push_back(input.name);
  std::vector<std::string> unknown;
  for (const auto& [name, array] : values)
    if (std::find(known.begin(), known.end(), name) == known.end()) unknown.push_back(name);
  std::erase_if(unbound, [&](const std::string& name) { return values.contains(name); });
  if (unbound.empty() && unknown.empty()) return;
  const std::string missing = unbound.empty() ? "" : fmt::format("parameters without a value: {}", some_names(unbound));
  const std::string extra = unknown.empty() ? "" : fmt::format("no parameter or state: {}", some_names(unknown));
  fail("graph '{}': {}{}{}{}", graph.name(), missing, missing.empty() || extra.empty() ? "" : "; ", extra,
       unknown.size() == 1 ? near_hint(unknown[0], known) : "");
}

}  // namespace

std::shared_ptr<BoundParameters> parameters_of(const Executable::State& state) {
  const std::scoped_lock lock(state.mutex);
  return state.parameters;
}

bool is_missing(const BoundParameters& parameters, std::size_t i, const Input& input) {
  return input.kind == InputKind::param && !address(parameters.arrays[i]) && !(input.type.size() == Dim(0));
}

Array state_value(Executable::State& state, std::size_t i) {
  const std::scoped_lock lock(state.mutex);
  if (state.states[i].bytes().data() == nullptr) state.states[i] = zeros(state.session->storage, state.source.inputs()[i].first);
  return state.states[i];
}

Array changing_state(Executable::State& state, std::size_t i, bool keeps) {
  Array value = state_value(state, i);
  const std::scoped_lock lock(state.mutex);
  if (keeps && state.owns_state[i] && has_owners(value, 2)) return value;  // the state's and this one
  Array own = state.session->storage.copy_of(value);
  if (keeps) state.states[i] = own, state.owns_state[i] = true;
  return own;
}

void Executable::set_param(std::string_view name, Feed value) {
  const std::size_t i = find_input(*state_, name, InputKind::param);
  state_->rebind({{i, kept_feed(state_->session->storage, state_->source.inputs()[i].first, value)}});
}

void Executable::set_params(const std::map<std::string, Array>& values) {
  check_names(*state_, values);
  std::vector<std::pair<std::size_t, Array>> fitting;
  for (const auto& [name, value] : values) {
    const std::size_t i = state_->input_index(name);
    fitting.emplace_back(i, kept_feed(state_->session->storage, state_->source.inputs()[i].first, value));
  }
  state_->rebind(std::move(fitting));
}

std::vector<std::string> Executable::missing_params() const {
  const auto parameters = parameters_of(*state_);
  std::vector<std::string> names;
  const auto& inputs = state_->source.inputs();
  const std::scoped_lock lock(state_->mutex);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Input& input = inputs[i].first;
    if (is_missing(*parameters, i, input) || (input.kind == InputKind::state && !state_->has_value[i])) names.push_back(input.name);
  }
  return names;
}

Array Executable::state(std::string_view name) const {
  const std::scoped_lock turn(state_->turn);  // a run that is going on may be changing its bytes
  return state_->session->storage.shown(state_value(*state_, find_input(*state_, name, InputKind::state)));
}

void Executable::set_state(std::string_view name, Feed value) {
  const std::size_t i = find_input(*state_, name, InputKind::state);
  state_->rebind({{i, kept_feed(state_->session->storage, state_->source.inputs()[i].first, value)}});
}

void Executable::copy_state_row(std::string_view name, std::int64_t from, std::int64_t to) {
  const std::scoped_lock turn(state_->turn);
  Array value = changing_state(*state_, find_input(*state_, name, InputKind::state), true);
  const std::int64_t rows = value.rank() > 0 ? value.shape()[0] : 0;
  for (const std::int64_t row : {from, to})
    if (row < 0 || row >= rows) fail("state '{}': row {} (allowed: 0..{})", name, row, rows - 1);
  const std::size_t bytes = value.bytes().size() / static_cast<std::size_t>(rows);
  std::byte* const all = address(value);
  state_->session->storage.copy(all + static_cast<std::size_t>(to) * bytes, {all + static_cast<std::size_t>(from) * bytes, bytes});
}

}  // namespace rlx
