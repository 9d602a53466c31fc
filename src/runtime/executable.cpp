#include "runtime/executable.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/checked.h"
#include "ir/graph_data.h"
#include "ir/sources.h"

namespace rlx {

Executable::State::State(std::shared_ptr<Session::State> shared, const Graph& graph, Program lowered, bool inner)
    : session(std::move(shared)),
      source(graph),
      program(std::move(lowered)),
      sizes(program.symbols),
      states(graph.inputs().size()),
      owns_state(graph.inputs().size(), true),
      states_before(graph.inputs().size()),
      updates_state(graph.inputs().size(), false),
      overwrites(graph.inputs().size(), false),
      has_value(graph.inputs().size(), false) {
  for (const auto& [input, value] : source.inputs()) {
    is_param.push_back(input.kind == InputKind::param);
    has_states = has_states || input.kind == InputKind::state;
  }
  for (const auto& [name, value] : source.outputs()) {
    const std::size_t i = input_index(name);
    state_of_output.push_back(i < source.inputs().size() && source.inputs()[i].first.kind == InputKind::state ? i : source.inputs().size());
  }
  is_prepared = inner ? std::vector<bool>(program.launches.size(), false) : prepared_launches(program);
  assign_slots();
  for (const Launch& launch : program.launches)
    for (ValueId written : launch.writes)
      if (const Slot& slot = slots[static_cast<std::size_t>(slot_of(written))]; slot.place == Slot::Place::input)
        updates_state[slot.index] = true;
  find_overwritten();
  plan_arena();
  auto slot = [this](ValueId v) { return slot_of(v); };
  auto is_weight = [this, inner](ValueId v) {
    const Slot& s = slots[static_cast<std::size_t>(slot_of(v))];
    return s.place == Slot::Place::constant || s.place == Slot::Place::prepared ||
           (s.place == Slot::Place::input && (inner || is_param[s.index]));
  };
  steps = cpu::make_steps(program, sizes, slot, is_weight, cpu::level_of(session->target));
  find_prepared();
  find_next_products();
  for (const auto& [region, part] : program.regions) regions[region] = std::make_unique<State>(session, *region, *part, true);
}

void Executable::State::forget_packed(const std::set<const void*>& owners) {
  for (const auto& [region, state] : regions) {
    const std::scoped_lock lock(state->mutex);
    std::erase_if(state->packed, [&](const auto& entry) { return owners.count(entry.second.weights.owner().get()) > 0; });
    state->forget_packed(owners);
  }
}

void Executable::State::rebind(std::vector<std::pair<std::size_t, Array>> arrays) {
  std::unique_lock<std::mutex> order(turn, std::defer_lock);
  if (has_states) order.lock();  // a run that is going on would overwrite a state
  const std::scoped_lock lock(mutex);
  std::vector<Array> params = parameters->arrays;
  std::set<std::size_t> changed;
  std::set<const void*> owners;
  for (auto& [i, array] : arrays) {
    session->packed.forget(array);
    owners.insert(array.owner().get());
    for (std::size_t other = 0; other < params.size(); ++other)
      if (is_param[other] && (other == i || params[other].bytes().data() == array.bytes().data())) {
        changed.insert(other);
        owners.insert(params[other].owner().get());
      }
    (is_param[i] ? params : states)[i] = std::move(array);
    owns_state[i] = false;
    has_value[i] = true;
  }
  forget_packed(owners);
  if (!changed.empty())
    parameters = std::make_shared<BoundParameters>(std::move(params), Prepared(prepared, *parameters->prepared(), changed));
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
  if (current && overwrites[input] && owned && has_owners(*current, 2) && current->shape() == shape)
    return *current;  // ours, and the run's
  return has_owners(before, 1) && before.shape() == shape ? before : Array(dtype, std::move(shape));
}

void Executable::State::keep_state(std::size_t input, const Array& value) {
  const bool stays = states[input].bytes().data() == value.bytes().data();
  if (owns_state[input] && !stays) states_before[input] = std::move(states[input]);
  states[input] = value;
  owns_state[input] = has_value[input] = true;
}

int Executable::State::slot_of(ValueId value) const { return slot_by_value_.at(program.root(value)); }

std::size_t Executable::State::input_index(std::string_view name) const {
  const auto& inputs = source.inputs();
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].first.name == name) return i;
  return inputs.size();
}

void Executable::State::assign_slots() {
  const Graph& graph = program.graph;
  auto add = [this](ValueId value, Slot::Place place, std::size_t index) {
    slot_by_value_[value] = static_cast<int>(slots.size());
    slots.push_back({place, value, index});
  };
  for (std::size_t i = 0; i < graph.inputs().size(); ++i) add(graph.inputs()[i].second.id(), Slot::Place::input, i);
  for (std::int32_t id = 0; id < static_cast<std::int32_t>(graph.size()); ++id)
    if (constant_value(graph.node(id))) add({id, 0}, Slot::Place::constant, static_cast<std::size_t>(id));
  for (std::size_t l = 0; l < program.launches.size(); ++l)
    for (ValueId v : is_prepared[l] ? program.launches[l].writes : std::vector<ValueId>{}) {
      prepared.values.push_back({static_cast<int>(slots.size()), graph.type(v), {}, {}, false});
      add(v, Slot::Place::prepared, prepared.values.size() - 1);
    }
  // A computed value that is an output is computed right where the caller reads it; its further names are copies.
  for (std::size_t i = 0; i < graph.outputs().size(); ++i) {
    const ValueId root = program.root(graph.outputs()[i].second.id());
    if (!slot_by_value_.count(root)) add(root, Slot::Place::output, i);
  }
  for (const Launch& launch : program.launches)
    for (ValueId v : launch.writes)
      if (!slot_by_value_.count(program.root(v))) add(program.root(v), Slot::Place::arena, 0);
  for (const auto& [name, value] : graph.outputs()) output_slots.push_back(slot_of(value.id()));
}

void Executable::State::find_prepared() {
  prepared.steps = steps.size();
  for (std::size_t l = 0; l < steps.size(); ++l) {
    if (is_prepared[l]) add_prepared(program.launches[l], steps[l]);
    else note_reads(l);
  }
  for (int slot : output_slots)
    if (const Slot& s = slots[static_cast<std::size_t>(slot)]; s.place == Slot::Place::prepared) prepared.values[s.index].kept = true;
  parameters = std::make_shared<BoundParameters>(std::vector<Array>(source.inputs().size()), Prepared(prepared));
}

void Executable::State::find_next_products() {
  next_product.assign(steps.size(), prepared.products.empty() ? 0 : prepared.products.front().step);
  std::size_t loop = 0, end = 0;  // of the steps of the last loop
  for (const PackedProduct& product : prepared.products) {
    if (product.step < end) continue;
    for (std::size_t step = loop; end > 0 && step < product.step; ++step) next_product[step] = product.step;
    loop = product.step, end = loop + steps[loop].joined;
  }
  experts_known.assign(steps.size(), 0);
  for (std::size_t step = 0; step < steps.size(); ++step)
    if (steps[step].experts >= 0)
      for (std::size_t before = step; before-- > 0 && experts_known[step] == 0;)
        for (ValueId written : program.launches[before].writes)
          if (slot_of(written) == steps[step].experts) experts_known[step] = before + 1;
}

/// The inputs that what is the same in every run is computed from.
std::set<std::size_t> Executable::State::inputs_of(const Slot& slot) const {
  if (slot.place == Slot::Place::input) return {slot.index};
  return slot.place == Slot::Place::prepared ? prepared.values[slot.index].inputs : std::set<std::size_t>{};
}

void Executable::State::add_prepared(const Launch& launch, const cpu::Step& step) {
  PreparedLaunch mine{&step, {}, {}};
  std::set<std::size_t> inputs;
  for (ValueId v : launch.reads) {
    const Slot& slot = slots[static_cast<std::size_t>(slot_of(v))];
    inputs.merge(inputs_of(slot));
    if (slot.place == Slot::Place::prepared) mine.reads.push_back(slot.index);
  }
  for (ValueId v : launch.writes) mine.writes.push_back(slots[static_cast<std::size_t>(slot_of(v))].index);
  for (std::size_t value : mine.writes) prepared.values[value].inputs = inputs;
  prepared.launches.push_back(std::move(mine));
}

/// Which prepared values a launch of each run reads, and how.
void Executable::State::note_reads(std::size_t step) {
  const Launch& launch = program.launches[step];
  const auto packed = std::ranges::find_if(launch.reads, [&](ValueId v) { return steps[step].weights && slot_of(v) == steps[step].b; });
  for (auto read = launch.reads.begin(); read != launch.reads.end(); ++read) {
    const Slot& slot = slots[static_cast<std::size_t>(slot_of(*read))];
    if (read == packed) prepared.products.push_back({step, inputs_of(slot)});
    if (slot.place != Slot::Place::prepared) continue;
    if (read == packed) prepared.values[slot.index].packs.insert(step);
    else prepared.values[slot.index].kept = true;
  }
}

namespace {

/// What a value takes at the bounds of its symbols. Throws Error when that has no number.
std::int64_t most_bytes(const Type& type) {
  const std::int64_t count = type.size().upper();
  if (!checked_mul(count, std::int64_t{info(type.dtype).bits})) fail("memory: {} has too many elements ({})", type.to_string(), count);
  return bytes_for(type.dtype, count);
}

/// The kernel that writes the results of a launch; null where there is none, or more than one.
const Kernel* storing_kernel(const Launch& launch) {
  return launch.storing < 0 ? nullptr : &launch.kernels[static_cast<std::size_t>(launch.storing)].kernel;
}

/// The store of a value by a kernel all of whose stores are of one loop, behind all reductions; null where there is none.
const KernelStore* store_of(const Kernel& kernel, ValueId value) {
  const KernelStore* found = nullptr;
  for (const KernelStore& store : kernel.stores) {
    if (!(store.index == kernel.stores[0].index)) return nullptr;
    if (kernel.buffers[static_cast<std::size_t>(store.buffer)].value == value) found = &store;
  }
  return found;
}

/// Whether a kernel reads a buffer only at the index of that store, and for its value, so that nothing is read behind it.
bool reads_where_it_stores(const Kernel& kernel, std::size_t buffer, const KernelStore& store) {
  const std::set<ExprId> before = needed_by(kernel, store.value, [](ExprId) { return true; });
  for (std::size_t i = 0; i < kernel.exprs.size(); ++i) {
    const Expr& e = kernel.exprs[i];
    if (e.kind != Expr::Kind::load || e.buffer != static_cast<int>(buffer)) continue;
    if (!(e.index == store.index) || before.count(static_cast<ExprId>(i)) == 0) return false;
  }
  return true;
}

}  // namespace

/// The slot whose memory code written by hand writes its result to where it may; -1 for other launches.
int Executable::State::taken_over(const Launch& launch) const {
  if (launch.replaced < 0) return -1;
  const ValueId operand = launch.reads[static_cast<std::size_t>(launch.replaced)];
  const Type &from = program.graph.type(operand), &to = program.graph.type(launch.writes[0]);
  return from == to ? slot_of(operand) : -1;
}

bool Executable::State::may_replace(const Launch& launch, ValueId written, ValueId read) const {
  if (std::ranges::count_if(launch.reads, [&](ValueId v) { return slot_of(v) == slot_of(read); }) != 1) return false;
  if (const int slot = taken_over(launch); slot >= 0) return slot == slot_of(read);
  const Kernel* kernel = storing_kernel(launch);
  const KernelStore* store = kernel ? store_of(*kernel, written) : nullptr;
  if (!store) return false;
  const auto buffer = std::ranges::find_if(kernel->buffers, [&](const KernelBuffer& b) { return !b.written && b.value == read; });
  if (buffer == kernel->buffers.end()) return false;
  const Type &from = program.graph.type(read), &to = program.graph.type(written);
  if (!(from.size() == to.size()) || info(from.dtype).bits != info(to.dtype).bits) return false;
  return reads_where_it_stores(*kernel, static_cast<std::size_t>(buffer - kernel->buffers.begin()), *store);
}

/// A block that `written` may take over, read for the last time by this launch. The blocks of a product do not overlap, so that its
/// epilogue may do so too with what the product itself does not read.
int Executable::State::in_place_candidate(const Launch& launch, ValueId written, int step, const std::vector<int>& last_use) const {
  for (ValueId read : launch.reads) {
    const int slot = slot_of(read);
    if (slots[static_cast<std::size_t>(slot)].place != Slot::Place::arena || last_use[static_cast<std::size_t>(slot)] != step) continue;
    if (may_replace(launch, written, read)) return slot;
  }
  return -1;
}

void Executable::State::find_overwritten() {
  for (std::size_t i = 0; i < output_slots.size(); ++i) {
    const std::size_t state = state_of_output[i];
    const Slot& next = slots[static_cast<std::size_t>(output_slots[i])];
    if (state == states.size() || next.place != Slot::Place::output || next.index != i) continue;
    overwrites[state] = is_read_before(slot_of(program.graph.inputs()[state].second.id()), output_slots[i]);
  }
}

bool Executable::State::is_read_before(int state, int next) const {
  if (std::ranges::count(output_slots, state) > 0) return false;  // a result, which is copied at the end
  for (auto launch = program.launches.rbegin(); launch != program.launches.rend(); ++launch) {
    const auto written = std::ranges::find_if(launch->writes, [&](ValueId v) { return slot_of(v) == next; });
    const bool writes = written != launch->writes.end();
    for (ValueId read : launch->reads)
      if (slot_of(read) == state && !(writes && may_replace(*launch, *written, read))) return false;
    if (writes) return true;
  }
  return false;
}

void Executable::State::plan_arena() {
  std::vector<int> last(slots.size(), -1);
  for (std::size_t s = 0; s < program.launches.size(); ++s) {
    const auto step = static_cast<int>(s);
    for (ValueId v : program.launches[s].reads) last[static_cast<std::size_t>(slot_of(v))] = step;
    for (ValueId v : program.launches[s].writes) {
      const auto slot = static_cast<std::size_t>(slot_of(v));
      last[slot] = std::max(last[slot], step);
    }
  }
  std::vector<Lifetime> blocks;
  std::vector<int> block_of(slots.size(), -1);
  std::vector<bool> taken(slots.size(), false);
  for (std::size_t s = 0; s < program.launches.size(); ++s) {
    // What lives longest comes first at a place that one of them may take over: residuals then stay where they are from layer to layer.
    std::vector<ValueId> writes = program.launches[s].writes;
    std::ranges::stable_sort(writes, std::greater(), [&](ValueId v) { return last[static_cast<std::size_t>(slot_of(v))]; });
    for (ValueId v : writes) {
      Slot& slot = slots[static_cast<std::size_t>(slot_of(v))];
      if (slot.place != Slot::Place::arena) continue;
      Lifetime block{most_bytes(program.graph.type(slot.value)), static_cast<int>(s), last[static_cast<std::size_t>(slot_of(v))], -1};
      const int reuse = in_place_candidate(program.launches[s], v, static_cast<int>(s), last);
      if (reuse >= 0 && !taken[static_cast<std::size_t>(reuse)]) {
        taken[static_cast<std::size_t>(reuse)] = true;
        block.in_place_of = block_of[static_cast<std::size_t>(reuse)];
      }
      slot.index = blocks.size();
      block_of[static_cast<std::size_t>(slot_of(v))] = static_cast<int>(blocks.size());
      blocks.push_back(block);
    }
  }
  plan = plan_memory(blocks);
  arenas = std::make_unique<ArenaPool>(plan.bytes);
}

}  // namespace rlx
