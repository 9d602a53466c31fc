#include "runtime/executable.h"

#include <algorithm>
#include <utility>

#include "base/working.h"
#include "ir/graph_data.h"
#include "ir/sources.h"
#include "rlx/text.h"
#include "runtime/host_node.h"

namespace rlx {

Executable::State::State(std::shared_ptr<Session::State> shared, const Graph& graph, Program lowered, std::shared_ptr<DeviceKernels> loaded,
                         const HostPrograms& on_host, bool inner)
    : session(std::move(shared)),
      source(graph),
      program(std::move(lowered)),
      sizes(program.symbols),
      kernels(std::move(loaded)),
      states(graph.inputs().size()),
      owns_state(graph.inputs().size(), true),
      states_before(graph.inputs().size()),
      updates_state(graph.inputs().size(), false),
      has_value(graph.inputs().size(), false) {
  for (const auto& [input, value] : source.inputs()) {
    is_param.push_back(input.kind == InputKind::param);
    has_states = has_states || input.kind == InputKind::state;
  }
  for (const auto& [name, value] : source.outputs()) {
    const std::size_t i = input_index(name);
    state_of_output.push_back(i < source.inputs().size() && source.inputs()[i].first.kind == InputKind::state ? i : source.inputs().size());
  }
  is_prepared = prepared_launches(program, inner);
  memory = assign_slots(program, is_prepared);
  for (const auto& arguments : memory.arguments)
    for (const Argument& argument : arguments)
      if (const Slot& slot = memory.at(argument.slot); slot.place == Slot::Place::input && argument.access != Access::read)
        updates_state[slot.index] = true;
  plan = plan_memory(memory, most_bytes);
  arenas = std::make_unique<ArenaPool>(plan.bytes);
  if (session->storage.on_host()) plans_.emplace_back(Bindings(), std::make_shared<MemoryPlan>(plan));
  find_prepared();
  if (session->code) host_program = session->code->steps(program, sizes, [this](ValueId v) { return slot_of(v); }, is_prepared);
  for (const auto& [region, part] : program.regions)
    regions[region] = std::make_unique<State>(session, *region, *part, kernels, on_host, true);
  if (!session->storage.on_host()) prepare_device(on_host);
}

void Executable::State::prepare_device(const HostPrograms& on_host) {
  of_host = values_of_host(program, is_prepared);
  for (const Launch& launch : program.launches) {
    steps.push_back(prepare_launch(launch, sizes, [this](ValueId v) { return slot_of(v); }));
    const std::optional<Graph> graph = launch.kind == Launch::Kind::host ? graph_of_node(program.graph, launch.node.node) : std::nullopt;
    if (!graph) continue;
    const auto known = on_host.empty() ? on_host.end() : on_host.find(to_text(*graph));
    on_the_host.emplace(&launch, known == on_host.end() ? session->host->compile(*graph) : known->second);
  }
  for (const Slot& slot : memory.slots)
    if (slot.place == Slot::Place::constant) {
      const auto node = static_cast<std::int32_t>(slot.index);
      constants.emplace(node, session->storage.put(*constant_value(program.graph.node(node))));
    }
  lists = device_lists(steps, is_prepared, step_order(memory, state_of_output));
}

std::shared_ptr<const MemoryPlan> Executable::State::plan_at(const Bindings& bindings) {
  if (session->storage.on_host()) return plans_.front().second;
  constexpr std::size_t most_kept = 4;
  const std::scoped_lock lock(mutex);
  const auto known = std::ranges::find_if(plans_, [&](const auto& entry) { return entry.first == bindings; });
  if (known != plans_.end()) return known->second;
  const auto bytes = [&](const Type& type) { return bytes_for(type.dtype, type.size().evaluate(bindings)); };
  const std::int64_t piece = session->storage.device().largest_buffer() / 64 * 64;
  if (plans_.size() == most_kept) plans_.erase(plans_.begin());
  return plans_.emplace_back(bindings, std::make_shared<MemoryPlan>(plan_memory(memory, bytes, piece))).second;
}

void Executable::State::forget_packed(const std::set<const void*>& owners) {
  for (const auto& [region, state] : regions) {
    const std::scoped_lock lock(state->mutex);
    std::erase_if(state->packed, [&](const auto& entry) { return owners.count(entry.second.from.owner().get()) > 0; });
    state->forget_packed(owners);
  }
}

void Executable::State::rebind(std::vector<std::pair<std::size_t, Array>> arrays) {
  const Working working;
  std::unique_lock<Turns> order(turn, std::defer_lock);
  if (has_states) order.lock();  // a run that is going on would overwrite a state
  const std::scoped_lock lock(mutex);
  std::vector<Array> params = parameters->arrays;
  std::set<std::size_t> changed;
  std::set<const void*> owners;
  for (auto& [i, array] : arrays) {
    session->shared.forget(array);
    session->storage.forget(array);
    owners.insert(array.owner().get());
    for (std::size_t other = 0; other < params.size(); ++other)
      if (is_param[other] && (other == i || address(params[other]) == address(array))) {
        changed.insert(other);
        owners.insert(params[other].owner().get());
      }
    (is_param[i] ? params : states)[i] = is_param[i] ? std::move(array) : session->storage.put(array);
    owns_state[i] = !is_param[i] && !session->storage.on_host();
    has_value[i] = true;
  }
  forget_packed(owners);
  if (!changed.empty())
    parameters = std::make_shared<BoundParameters>(std::move(params), Prepared(prepared, *parameters->prepared(), changed),
                                                   parameters->placed_but(changed));
}

/// Where a value cannot be written over, two memories take turns: that of the value before the one that this run reads is free, unless
/// somebody has kept it.
Array Executable::State::next_state(std::size_t input, const Array* current, DType dtype, std::vector<std::int64_t> shape) {
  Array before;
  bool owned = false;
  {
    const std::scoped_lock lock(mutex);
    before = std::exchange(states_before[input], {});
    owned = owns_state[input];
  }
  if (current && memory.overwrites[input] && owned && has_owners(*current, 2) && current->shape() == shape)
    return *current;  // ours, and the run's
  return has_owners(before, 1) && before.shape() == shape ? before : session->storage.make(dtype, std::move(shape));
}

void Executable::State::keep_state(std::size_t input, const Array& value) {
  const bool stays = states[input].bytes().data() == value.bytes().data();
  if (owns_state[input] && !stays) states_before[input] = std::move(states[input]);
  states[input] = value;
  owns_state[input] = !taken;  // what a device gave, it alone may write over
  has_value[input] = true;
}

int Executable::State::slot_of(ValueId value) const { return memory.by_root.at(program.root(value)); }

std::size_t Executable::State::input_index(std::string_view name) const {
  const auto& inputs = source.inputs();
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].first.name == name) return i;
  return inputs.size();
}

void Executable::State::find_prepared() {
  runs_read.assign(source.inputs().size(), false);
  const auto note_read = [&](int slot) {
    const Slot& at = memory.at(slot);
    if (at.place == Slot::Place::input) runs_read[at.index] = true;
    if (at.place == Slot::Place::prepared) prepared.values[at.index].kept = true;
  };
  for (std::size_t slot = 0; slot < memory.slots.size(); ++slot)
    if (const Slot& at = memory.slots[slot]; at.place == Slot::Place::prepared)
      prepared.values.push_back({static_cast<int>(slot), at.type, {}, false});
  for (std::size_t step = 0; step < is_prepared.size(); ++step) {
    if (is_prepared[step]) add_prepared(step);
    else
      for (const Argument& argument : memory.arguments[step]) note_read(argument.slot);
  }
  for (int slot : memory.outputs) note_read(slot);
  parameters = std::make_shared<BoundParameters>(std::vector<Array>(source.inputs().size()), Prepared(prepared));
}

/// The inputs that what is the same in every run is computed from.
std::set<std::size_t> Executable::State::inputs_of(const Slot& slot) const {
  if (slot.place == Slot::Place::input) return {slot.index};
  return slot.place == Slot::Place::prepared ? prepared.values[slot.index].inputs : std::set<std::size_t>{};
}

void Executable::State::add_prepared(std::size_t step) {
  const Launch& launch = program.launches[step];
  PreparedLaunch mine{step, {}, {}};
  std::set<std::size_t> inputs;
  for (ValueId v : launch.reads) {
    const Slot& slot = memory.at(slot_of(v));
    inputs.merge(inputs_of(slot));
    if (slot.place == Slot::Place::prepared) mine.reads.push_back(slot.index);
  }
  for (ValueId v : launch.writes) mine.writes.push_back(memory.at(slot_of(v)).index);
  for (std::size_t value : mine.writes) prepared.values[value].inputs = inputs;
  prepared.launches.push_back(std::move(mine));
}

}  // namespace rlx
