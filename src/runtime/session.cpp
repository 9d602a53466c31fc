#include "rlx/session.h"

#include <algorithm>
#include <cstring>

#include "backends/cpu/denormals.h"
#include "backends/cpu/gemm/micro_kernel.h"
#include "base/cpu_count.h"
#include "base/names.h"
#include "ir/graph_data.h"
#include "ir/symbols.h"
#include "runtime/run.h"

namespace rlx {

std::string Device::description() const {
  return fmt::format("{}, {} threads", cpu::describe(cpu::cpu_features(), cpu::cpu_level()), granted_cpus());
}

bool Device::multiplies(DType dtype) const {
  if (dtype == bf16) return cpu::has_micro_kernel<cpu::Bf16>(cpu::cpu_level());
  if (dtype == i8) return cpu::has_micro_kernel<std::int8_t>(cpu::cpu_level());
  return dtype == f32 || dtype == f64;
}

Session::State::State(SessionOptions given)
    : options(std::move(given)),
      pool(options.threads > 0 ? options.threads : granted_cpus(), cpu::flush_denormals),
      jit(cpu::cpu_level(), options.cache_folder.value_or(cpu::default_cache_folder())) {
  if (options.tune)
    tuned =
        std::make_unique<cpu::TunedChoices>(options.cache_folder.value_or(cpu::default_cache_folder()), cpu::tuning_machine(pool.size()));
}

Session::Session(Device, SessionOptions options) {
  if (options.threads < 0 || options.threads > ThreadPool::max_threads)
    fail("session: {} threads (allowed: 1..{}, or 0 for as many as the process may use)", options.threads, ThreadPool::max_threads);
  if (options.calibration && options.precision != Precision::int8)
    fail("session: a calibration is of int8, but the precision is {}",
         enum_words(options.precision)[static_cast<std::size_t>(options.precision)]);
  state_ = std::make_shared<State>(std::move(options));
}

int Session::threads() const { return state_->pool.size(); }
Precision Session::precision() const { return state_->options.precision; }

CompileCounters Session::counters() const {
  const cpu::JitCounters c = state_->jit.counters();
  const auto tuned = state_->tuned ? state_->tuned->counters() : cpu::TunedChoices::Counters{};
  return {c.compiled, c.from_disk, c.shared, tuned.timed, tuned.from_disk, c.cache_error.empty() ? tuned.error : c.cache_error};
}

const Array& Outputs::at(std::string_view name) const& {
  std::vector<std::string_view> names;
  for (const auto& [known, array] : items_) {
    if (known == name) return array;
    names.push_back(known);
  }
  fail("output '{}' is unknown{}", name, near_hint(name, names));
}

namespace {

std::vector<std::int64_t> static_shape(const Type& type, const Bindings& bindings) {
  std::vector<std::int64_t> shape;
  for (const Dim& dim : type.shape) shape.push_back(dim.evaluate(bindings));
  return shape;
}

/// The shape of so many values of a type with at most one axis whose size is a symbol alone. Throws Error where it is not clear.
std::vector<std::int64_t> shape_of_values(std::string_view what, std::string_view name, const Type& type, std::int64_t count) {
  std::vector<std::int64_t> shape;
  std::optional<std::size_t> open;
  std::int64_t known = 1;
  for (const Dim& dim : type.shape) {
    if (!dim.is_static() && open)
      fail("{} '{}': the shape of {} values of {} is not clear (give an Array: Array::of(shape, values))", what, name, count,
           type.to_string());
    if (!dim.is_static()) open = shape.size();
    shape.push_back(dim.is_static() ? dim.value() : 1);
    known *= shape.back();
  }
  if (open && known > 0 && count % known == 0) shape[*open] = count / known;
  else if (open) fail("{} '{}': {} values for {}", what, name, count, type.to_string());
  else if (known != count) fail("{} '{}': {} values for {} ({} elements)", what, name, count, type.to_string(), known);
  return shape;
}

/// The array that was fed under a name, with the dtype checked; the values of a range take the shape of the type.
Array checked(std::string_view what, std::string_view name, const Type& type, const Feed& feed) {
  Array array = feed.array();
  if (array.rank() == 0 && array.size() == 0) fail("{} '{}': the array has no value: it was never made", what, name);
  if (array.dtype() != type.dtype)
    fail("{} '{}': elements are {}, must be {}", what, name, rlx::name(array.dtype()), rlx::name(type.dtype));
  if (feed.flat()) array = Array(array.dtype(), shape_of_values(what, name, type, array.size()), array.bytes(), array.owner());
  const auto alignment = static_cast<std::uintptr_t>(std::max(1, info(type.dtype).bits / 8));
  if (reinterpret_cast<std::uintptr_t>(array.bytes().data()) % std::min<std::uintptr_t>(alignment, 8) != 0) {
    Array aligned(array.dtype(), array.shape());
    std::memcpy(aligned.mutable_bytes().data(), array.bytes().data(), array.bytes().size());
    return aligned;
  }
  return array;
}

std::string_view word(InputKind kind) { return kind == InputKind::param ? "parameter" : kind == InputKind::state ? "state" : "input"; }
std::string_view with_article(InputKind kind) {
  return kind == InputKind::param ? "a parameter" : kind == InputKind::state ? "a state" : "an input";
}

/// The index of an input of the wanted kind. Throws Error with near names.
std::size_t find_input(const Executable::State& state, std::string_view name, InputKind kind) {
  const auto& inputs = state.source.inputs();
  const std::size_t i = state.input_index(name);
  if (i < inputs.size() && inputs[i].first.kind == kind) return i;
  std::vector<std::string_view> names;
  for (const auto& [input, value] : inputs)
    if (input.kind == kind) names.push_back(input.name);
  if (i < inputs.size())
    fail("graph '{}': '{}' is {}, not {}", state.source.name(), name, with_article(inputs[i].first.kind), with_article(kind));
  fail("graph '{}': {} '{}' is unknown{}", state.source.name(), word(kind), name, near_hint(name, names));
}

/// Whether some sizes of the symbols give the type this shape, each axis by itself.
bool may_fit(const Type& type, const std::vector<std::int64_t>& shape) {
  if (static_cast<int>(shape.size()) != type.rank()) return false;
  for (std::size_t axis = 0; axis < shape.size(); ++axis)
    if (shape[axis] < type.shape[axis].lower() || shape[axis] > type.shape[axis].upper()) return false;
  return true;
}

/// The array to keep under a name until it is replaced: nobody but the caller knows how long bytes without an owner live.
Array kept(const Input& input, const Feed& feed) {
  Array array = checked(word(input.kind), input.name, input.type, feed);
  if (!may_fit(input.type, array.shape()))
    fail("{} '{}': shape {} does not fit {}", word(input.kind), input.name, to_string(Dims(array.shape().begin(), array.shape().end())),
         input.type.to_string());
  if (array.owner()) return array;
  Array copy(array.dtype(), array.shape());
  std::copy(array.bytes().begin(), array.bytes().end(), copy.mutable_bytes().begin());
  return copy;
}

Array zeros(const Input& state) {
  if (!state.type.is_static()) fail("state '{}': {} has no size before it is set", state.name, state.type.to_string());
  return Array(state.type.dtype, static_shape(state.type, {}));
}

std::shared_ptr<BoundParameters> parameters_of(const Executable::State& state) {
  const std::scoped_lock lock(state.mutex);
  return state.parameters;
}

bool is_missing(const BoundParameters& parameters, std::size_t i, const Input& input) {
  return input.kind == InputKind::param && parameters.arrays[i].bytes().data() == nullptr && !(input.type.size() == Dim(0));
}

Array state_value(Executable::State& state, std::size_t i) {
  const std::scoped_lock lock(state.mutex);
  if (state.states[i].bytes().data() == nullptr) state.states[i] = zeros(state.source.inputs()[i].first);
  return state.states[i];
}

/// The state's value for a run that changes it where it lies: memory that nobody else reads. One that keeps nothing changes a copy.
Array changing_state(Executable::State& state, std::size_t i, bool keeps) {
  Array value = state_value(state, i);
  const std::scoped_lock lock(state.mutex);
  if (keeps && state.owns_state[i] && has_owners(value, 2)) return value;  // the state's and this one
  Array own(value.dtype(), value.shape());
  std::ranges::copy(value.bytes(), own.mutable_bytes().begin());
  if (keeps) state.states[i] = own, state.owns_state[i] = true;
  return own;
}

/// Throws unless every value is for a parameter or state, and every unbound parameter has one.
void check_names(const Graph& graph, const std::map<std::string, Array>& values, std::vector<std::string> unbound) {
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

void Executable::set_param(std::string_view name, Feed value) {
  const std::size_t i = find_input(*state_, name, InputKind::param);
  state_->rebind({{i, kept(state_->source.inputs()[i].first, value)}});
}

void Executable::set_params(const std::map<std::string, Array>& values) {
  check_names(state_->source, values, missing_params());
  std::vector<std::pair<std::size_t, Array>> fitting;
  for (const auto& [name, value] : values) {
    const std::size_t i = state_->input_index(name);
    fitting.emplace_back(i, kept(state_->source.inputs()[i].first, value));
  }
  state_->rebind(std::move(fitting));
}

std::vector<std::string> Executable::missing_params() const {
  const auto parameters = parameters_of(*state_);
  std::vector<std::string> names;
  const auto& inputs = state_->source.inputs();
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (is_missing(*parameters, i, inputs[i].first)) names.push_back(inputs[i].first.name);
  return names;
}

Array Executable::state(std::string_view name) const { return state_value(*state_, find_input(*state_, name, InputKind::state)); }

void Executable::set_state(std::string_view name, Feed value) {
  const std::size_t i = find_input(*state_, name, InputKind::state);
  state_->rebind({{i, kept(state_->source.inputs()[i].first, value)}});
}

void Executable::copy_state_row(std::string_view name, std::int64_t from, std::int64_t to) {
  const std::scoped_lock turn(state_->turn);
  Array value = changing_state(*state_, find_input(*state_, name, InputKind::state), true);
  const std::int64_t rows = value.rank() > 0 ? value.shape()[0] : 0;
  for (const std::int64_t row : {from, to})
    if (row < 0 || row >= rows) fail("state '{}': row {} (allowed: 0..{})", name, row, rows - 1);
  const std::size_t bytes = value.bytes().size() / static_cast<std::size_t>(rows);
  const std::span<std::byte> all = value.mutable_bytes();
  std::memmove(all.data() + static_cast<std::size_t>(to) * bytes, all.data() + static_cast<std::size_t>(from) * bytes, bytes);
}

namespace {

/// The arrays of all inputs of one run, and the sizes that follow from them.
struct Bound {
  std::shared_ptr<BoundParameters> parameters;
  std::vector<Array> others;         // inputs and states
  std::vector<const Array*> arrays;  // all, by input: of the two above
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
  if (it != fed.end()) return checked("input", input.name, input.type, it->second);
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
      binder.bind(word(input.kind), input.name, input.type, bound.arrays[i]->shape());
  }
  bound.bindings = binder.finish();
  return bound;
}

/// Results are written while inputs are still read, in any order.
void refuse_overlaps(const std::map<std::string, Target>& into, const std::vector<const Array*>& inputs) {
  std::vector<std::span<const std::byte>> others;
  for (const Array* input : inputs) others.push_back(input->bytes());
  for (const auto& [name, target] : into) {
    for (const auto& other : others)
      if (target.bytes().data() < other.data() + other.size() && other.data() < target.bytes().data() + target.bytes().size())
        fail("output '{}': its memory is also that of an input or of another output", name);
    others.emplace_back(target.bytes());
  }
}

/// The caller's memory for each output, null where it brings none; empty where it brings none at all.
std::vector<const Target*> targets(const Executable::State& state, const std::map<std::string, Target>& into,
                                   const std::vector<const Array*>& inputs) {
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
    const std::size_t same = state.input_index(name);
    if (same < state.source.inputs().size() && state.source.inputs()[same].first.kind == InputKind::state)
      fail("output '{}': it is a state, which keeps its own memory", name);
  }
  refuse_overlaps(into, inputs);
  for (const auto& [name, target] : into)
    if (std::find(names.begin(), names.end(), name) == names.end()) fail("output '{}' is unknown{}", name, near_hint(name, names));
  return all;
}

/// Gives the results their names; those that are named as a state become its value.
Outputs named(Executable::State& state, std::vector<Array> arrays, const std::map<std::string, Target>& into) {
  std::vector<std::pair<std::string, Array>> items;
  std::unique_lock<std::mutex> lock(state.mutex, std::defer_lock);
  if (state.has_states) lock.lock();
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    if (const std::size_t input = state.state_of_output[i]; input < state.states.size()) state.keep_state(input, arrays[i]);
    if (const std::string& name = state.source.outputs()[i].first; !into.count(name)) items.emplace_back(name, std::move(arrays[i]));
  }
  return Outputs(std::move(items));
}

}  // namespace

Outputs Executable::run(const std::map<std::string, Feed>& inputs) const { return run(inputs, {}); }

Outputs Executable::run(const std::map<std::string, Feed>& inputs, const std::map<std::string, Target>& into) const {
  std::unique_lock<std::mutex> turn(state_->turn, std::defer_lock);
  if (state_->has_states) turn.lock();
  Bound bound = bind(*state_, inputs, true);
  const std::vector<const Target*> memory = targets(*state_, into, bound.arrays);
  Run run(*state_, std::move(bound.arrays), state_->is_param, std::move(bound.bindings), std::move(bound.parameters), memory);
  run.execute();
  return named(*state_, run.results(), into);
}

std::int64_t Executable::arena_bytes() const { return state_->plan.bytes; }

std::int64_t Executable::live_bytes() const { return state_->plan.live_bytes; }

void Executable::trim() const { state_->arenas->trim(); }

std::vector<LaunchReport> Executable::profile(const std::map<std::string, Feed>& inputs, int repeats) const {
  Bound bound = bind(*state_, inputs, false);
  std::vector<LaunchReport> reports = launch_costs(*state_, bound.bindings);
  if (repeats == 0) return reports;
  Run run(*state_, std::move(bound.arrays), state_->is_param, std::move(bound.bindings), std::move(bound.parameters));
  run.time(repeats, reports);
  return reports;
}

std::vector<TraceEvent> Executable::trace(const std::map<std::string, Feed>& inputs, int repeats) const {
  Bound bound = bind(*state_, inputs, false);
  return Run(*state_, std::move(bound.arrays), state_->is_param, std::move(bound.bindings), std::move(bound.parameters)).trace(repeats);
}

}  // namespace rlx
