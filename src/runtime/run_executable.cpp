// Runs of an executable: what is fed and kept becomes the arrays of a run, and its results what the caller asked for.
#include <algorithm>
#include <system_error>

#include "base/names.h"
#include "base/working.h"
#include "ir/graph_data.h"
#include "ir/symbols.h"
#include "runtime/feeds.h"
#include "runtime/kept_inputs.h"
#include "runtime/run.h"

namespace rlx {
namespace {

/// The arrays of all inputs of one run, and the sizes that follow from them.
struct Bound {
  std::shared_ptr<BoundParameters> parameters;
  std::vector<Array> others;         // inputs and states
  std::vector<Array> placed;         // parameters in the memory of a device
  std::vector<const Array*> arrays;  // all, by input: of the three above
  Bindings bindings;
};

[[noreturn]] void refuse_unbound(const Executable::State& state, const BoundParameters& parameters) {
  std::string names;
  for (std::size_t i = 0; i < state.source.inputs().size(); ++i)
    if (const Input& input = state.source.inputs()[i].first; is_missing(parameters, i, input))
      names += fmt::format("{}'{}' ({})", names.empty() ? "" : ", ", input.name, input.type.to_string());
  fail("graph '{}': no value is bound to parameter {}", state.source.name(), names);
}

/// Throws Error when a name is that of no input.
void check_fed(const Executable::State& state, const std::map<std::string, Feed>& fed) {
  for (const auto& [name, feed] : fed) find_input(state, name, InputKind::input);
}

Array fed_array(const Executable::State& state, const Input& input, const std::map<std::string, Feed>& fed) {
  const auto it = fed.find(input.name);
  if (it != fed.end()) return checked_feed(state.session->storage, "input", input.name, input.type, it->second);
  check_fed(state, fed);
  fail("graph '{}': input '{}' ({}) is missing", state.source.name(), input.name, input.type.to_string());
}

/// `keeps`: whether the run's states are those of the next one.
Bound gather(Executable::State& state, const std::map<std::string, Feed>& fed, bool keeps) {
  const auto& inputs = state.source.inputs();
  Bound bound;
  bound.parameters = parameters_of(state);
  bound.others.reserve(inputs.size());
  std::size_t used = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Input& input = inputs[i].first;
    if (is_missing(*bound.parameters, i, input)) refuse_unbound(state, *bound.parameters);
    if (input.kind == InputKind::input) bound.others.push_back(fed_array(state, input, fed)), ++used;
    if (input.kind == InputKind::state)
      bound.others.push_back(state.updates_state[i] ? changing_state(state, i, keeps) : state_value(state, i));
    bound.arrays.push_back(input.kind == InputKind::param ? &bound.parameters->arrays[i] : &bound.others.back());
  }
  if (used < fed.size()) check_fed(state, fed);
  return bound;
}

Bound bind(Executable::State& state, const std::map<std::string, Feed>& fed, bool keeps) {
  Bound bound = gather(state, fed, keeps);
  SymbolBinder binder;
  for (std::size_t i = 0; i < bound.arrays.size(); ++i) {
    const Input& input = state.source.inputs()[i].first;
    if (input.kind == InputKind::input || !input.type.is_static())  // what is kept was checked but for its symbols
      binder.bind(input_word(input.kind), input.name, input.type, bound.arrays[i]->shape());
  }
  bound.bindings = binder.finish();
  return bound;
}

/// Throws Error where an integer input names a place outside of its axis, if the session asks for that.
void check_indices(const Executable::State& state, const Bound& bound) {
  if (!state.index_checks) return;
  std::map<std::string, Feed> fed;
  for (std::size_t i = 0; i < bound.arrays.size(); ++i)
    if (const Input& input = state.source.inputs()[i].first; input.kind == InputKind::input && is_integer(input.type.dtype))
      fed.emplace(input.name, *bound.arrays[i]);
  const Outputs places = state.index_checks->places.run(fed);
  for (std::size_t c = 0; c < state.index_checks->checks.size(); ++c) {
    const IndexCheck& check = state.index_checks->checks[c];
    const std::int64_t size = check.size.evaluate(bound.bindings);
    for (const std::int64_t place : {places[2 * c].get_int(0), places[2 * c + 1].get_int(0)})
      if (place < 0 || place >= size)
        fail("graph '{}': input {}: index {} of {} is out of range (allowed: 0..{})", state.source.name(), check.inputs, place, check.op,
             size - 1);
  }
}

/// Results are written while inputs are still read, in any order.
void refuse_overlaps(const std::map<std::string, Target>& into, const std::vector<const Array*>& inputs) {
  std::vector<std::span<const std::byte>> others;
  for (const Array* input : inputs) others.push_back(DeviceBytes::place(*input));
  for (const auto& [name, target] : into) {
    for (const auto& other : others)
      if (target.bytes().data() < other.data() + other.size() && other.data() < target.bytes().data() + target.bytes().size())
        fail("output '{}': its memory is also that of an input or of another output", name);
    others.emplace_back(target.bytes());
  }
}

/// The caller's memory for each output, null where it brings none; empty where it brings none at all.
std::vector<const Target*> targets(const Executable::State& state, const std::map<std::string, Target>& into, const Bound& bound) {
  std::vector<const Target*> all;
  if (into.empty()) return all;
  std::vector<std::string_view> names;
  for (const auto& [name, value] : state.source.outputs()) {
    const auto it = into.find(name);
    all.push_back(it == into.end() ? nullptr : &it->second);
    names.push_back(name);
    if (!all.back()) continue;
    if (it->second.dtype() != value.dtype())
      fail("output '{}': elements are {}, must be {}", name, rlx::name(it->second.dtype()), rlx::name(value.dtype()));
    const std::int64_t wanted = value.type().size().evaluate(bound.bindings);
    const auto room = static_cast<std::int64_t>(it->second.bytes().size()) / bytes_for(value.dtype(), 1);
    if (room != wanted) fail("output '{}': memory for {} values, {} are computed", name, room, wanted);
    const std::size_t same = state.input_index(name);
    if (same < state.source.inputs().size() && state.source.inputs()[same].first.kind == InputKind::state)
      fail("output '{}': it is a state, which keeps its own memory", name);
  }
  refuse_overlaps(into, bound.arrays);
  for (const auto& [name, target] : into)
    if (std::find(names.begin(), names.end(), name) == names.end()) fail("output '{}' is unknown{}", name, near_hint(name, names));
  return all;
}

/// Gives the results their names; those that are named as a state become its value.
Outputs named(Executable::State& state, std::vector<Array> arrays, const std::map<std::string, Target>& into) {
  std::vector<Outputs::Item> items;
  std::unique_lock<std::mutex> lock(state.mutex, std::defer_lock);
  if (state.has_states) lock.lock();
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    if (const std::size_t input = state.state_of_output[i]; input < state.states.size()) state.keep_state(input, arrays[i]);
    if (const std::string& name = state.source.outputs()[i].first; !into.count(name))
      items.emplace_back(name, state.session->storage.shown(arrays[i]));
  }
  return Outputs(std::move(items));
}

/// By input: whether a run reads it, or what is still to be prepared for it.
std::vector<bool> wanted_inputs(const Executable::State& state, const Prepared& prepared) {
  std::vector<bool> wanted = state.runs_read;
  if (prepared.complete) return wanted;
  for (const PreparedLaunch* launch : prepared.missing(state.prepared))
    for (const std::size_t value : launch->writes)
      for (const std::size_t input : state.prepared.values[value].inputs) wanted[input] = true;
  return wanted;
}

/// Brings the arrays to where the run reads them.
void place(const Executable::State& state, Bound& bound) {
  Storage& storage = state.session->storage;
  if (storage.on_host()) return;
  bound.placed = bound.parameters->place(storage, wanted_inputs(state, *bound.parameters->prepared()));
  for (std::size_t i = 0, other = 0; i < bound.arrays.size(); ++i) {
    const InputKind kind = state.source.inputs()[i].first.kind;
    if (kind == InputKind::param) {
      bound.arrays[i] = &bound.placed[i];
      continue;
    }
    Array& array = bound.others[other++];
    if (kind == InputKind::input) array = storage.put(array);
  }
}

/// Brings results of a device to the caller's memory, and waits until all of them are there.
void finish(const Executable::State& state, const std::vector<Array>& results, const std::vector<const Target*>& memory) {
  const Storage& storage = state.session->storage;
  if (storage.on_host()) return;
  for (std::size_t i = 0; i < memory.size(); ++i)
    if (memory[i]) storage.take(results[i], memory[i]->bytes());
  storage.device().finish();
}

/// Who holds it sees the states that no run changes.
std::unique_lock<Turns> turn_of(Executable::State& state) {
  return state.has_states ? std::unique_lock(state.turn) : std::unique_lock<Turns>();
}

/// A run of a graph that the device computes whole. Its results are read where they lie.
Outputs run_taken(Executable::State& state, Bound& bound, const std::vector<const Target*>& memory,
                  const std::map<std::string, Target>& into) {
  TakenInputs inputs{bound.arrays, {}, bound.parameters, bound.bindings};
  for (std::size_t i = 0; i < bound.arrays.size(); ++i) {
    const bool replaced = std::ranges::find(state.state_of_output, i) != state.state_of_output.end();
    inputs.given_away.push_back(replaced && has_owners(*bound.arrays[i], 2));  // the state's and the run's
  }
  std::vector<Array> results;
  try {
    results = state.taken->run(inputs);
  } catch (...) {
    for (std::size_t i = 0; i < inputs.given_away.size(); ++i)
      if (inputs.given_away[i]) state.states[i] = {};
    throw;
  }
  for (std::size_t i = 0; i < memory.size(); ++i)
    if (memory[i]) std::ranges::copy(results[i].bytes(), memory[i]->bytes().begin());
  return named(state, std::move(results), into);
}

/// All of it as one launch: what the device's library does inside, it does not tell.
LaunchReport time_taken(Executable::State& state, const Bound& bound, int repeats) {
  LaunchReport report;
  report.name = state.source.name(), report.kind = "device";
  const TakenInputs inputs{bound.arrays, std::vector<bool>(bound.arrays.size(), false), bound.parameters, bound.bindings};
  for (int i = 0; i < repeats; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    state.taken->run(inputs);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    report.seconds = i == 0 ? seconds : std::min(report.seconds, seconds);
  }
  return report;
}

/// A run whose turn it is.
Outputs run_now(Executable::State& state, const std::map<std::string, Feed>& inputs, const std::map<std::string, Target>& into) {
  Bound bound = bind(state, inputs, true);
  check_indices(state, bound);
  const std::vector<const Target*> memory = targets(state, into, bound);
  if (state.taken) return run_taken(state, bound, memory, into);
  place(state, bound);
  const bool direct = state.session->storage.on_host();
  Run run(state, std::move(bound.arrays), state.is_param, std::move(bound.bindings), std::move(bound.parameters),
          direct ? memory : std::vector<const Target*>(), true);
  run.execute();
  std::vector<Array> results = run.results();
  finish(state, results, memory);
  return named(state, std::move(results), into);
}

}  // namespace

Outputs Executable::run(const std::map<std::string, Feed>& inputs) const { return run(inputs, {}); }

Outputs Executable::run(const std::map<std::string, Feed>& inputs, const std::map<std::string, Target>& into) const {
  const Working working;
  const auto turn = turn_of(*state_);
  return run_now(*state_, inputs, into);
}

PendingRun Executable::run_async(std::map<std::string, Feed> inputs, std::map<std::string, Target> into) const {
  auto working = std::make_shared<const Working>();  // from the place on that it takes
  const auto place = state_->has_states ? std::optional(state_->turn.take_place()) : std::nullopt;
  auto run = [working = std::move(working), state = state_, place, inputs = std::move(inputs), into = std::move(into)]() mutable {
    const auto until_the_end = std::move(working);  // of the run, not of what is kept of it
    if (!place) return run_now(*state, inputs, into);
    state->turn.wait_for(*place);
    const std::unique_lock<Turns> turn(state->turn, std::adopt_lock);
    return run_now(*state, inputs, into);
  };
  try {
    return PendingRun(std::async(std::launch::async, std::move(run)).share());
  } catch (const std::system_error& error) {
    if (place) state_->turn.wait_for(*place), state_->turn.unlock();  // others are behind it
    fail("graph '{}': no thread for a run: {}", state_->source.name(), error.what());
  }
}

std::int64_t Executable::arena_bytes() const { return state_->plan.bytes; }

std::int64_t Executable::live_bytes() const { return state_->plan.live_bytes; }

void Executable::trim() const { state_->arenas->trim(); }

std::vector<LaunchReport> Executable::profile(const std::map<std::string, Feed>& inputs, int repeats) const {
  const Working working;
  const auto turn = turn_of(*state_);
  Bound bound = bind(*state_, inputs, false);
  std::vector<LaunchReport> reports = launch_costs(*state_, bound.bindings);
  if (state_->taken) return {time_taken(*state_, bound, repeats)};
  if (repeats == 0) return reports;
  place(*state_, bound);
  Run run(*state_, std::move(bound.arrays), state_->is_param, std::move(bound.bindings), std::move(bound.parameters));
  run.time(repeats, reports);
  return reports;
}

std::vector<TraceEvent> Executable::trace(const std::map<std::string, Feed>& inputs, int repeats) const {
  const Working working;
  const auto turn = turn_of(*state_);
  Bound bound = bind(*state_, inputs, false);
  if (state_->taken) return {};  // the threads are the library's own
  place(*state_, bound);
  return Run(*state_, std::move(bound.arrays), state_->is_param, std::move(bound.bindings), std::move(bound.parameters)).trace(repeats);
}

}  // namespace rlx
