#include "runtime/run.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "base/files/mapped_file.h"
#include "base/progress.h"
#include "ir/array_type.h"
#include "ir/sources.h"
#include "ir/symbols.h"

namespace rlx {

Run::Run(Executable::State& state, std::vector<const Array*> inputs, std::vector<bool> weights, Bindings bindings,
         std::shared_ptr<BoundParameters> parameters, const std::vector<const Target*>& targets, bool keeps)
    : state_(state),
      storage_(state.session->storage),
      parameters_(std::move(parameters)),
      inputs_(std::move(inputs)),
      weights_(std::move(weights)) {
  run_.program = &state_.program;
  run_.target = &state_.session->target;
  if (state_.session->code) run_.pool = &state_.session->code->pool;
  run_.bindings = std::move(bindings);
  for (const std::string& symbol : state_.program.symbols) run_.symbols.push_back(value_of_symbol(symbol, run_.bindings).value());
  run_.sizes = state_.sizes.values(run_.symbols);
  run_.inner = !parameters_;
  run_.run_other = [this](const LaunchStep& step) { run_other(step); };
  plan_ = state_.plan_at(run_.bindings);
  if (storage_.on_host()) arena_ = state_.arenas->borrow();
  else
    for (const std::int64_t bytes : plan_->chunks) device_arena_.push_back(storage_.device().allocate(bytes));
  make_outputs(targets, keeps);
  place_slots();
}

void Run::make_outputs(const std::vector<const Target*>& targets, bool keeps) {
  for (const auto& [name, value] : state_.source.outputs()) {
    std::vector<std::int64_t> shape;
    for (const Dim& dim : value.shape()) shape.push_back(dim.evaluate(run_.bindings));
    const Target* target = targets.empty() ? nullptr : targets[outputs_.size()];
    if (const Slot& slot = state_.memory.at(state_.memory.outputs[outputs_.size()]);
        slot.place == Slot::Place::input && state_.updates_state[slot.index]) {
      outputs_.push_back(*inputs_[slot.index]);
      output_bytes_.push_back(nullptr);
      continue;
    }
    if (!target) {
      const std::size_t state = state_.state_of_output[outputs_.size()];
      outputs_.push_back(state < inputs_.size()
                             ? state_.next_state(state, keeps ? inputs_[state] : nullptr, value.dtype(), std::move(shape))
                             : storage_.make(value.dtype(), std::move(shape)));
      output_bytes_.push_back(address(outputs_.back()));
      continue;
    }
    outputs_.emplace_back(value.dtype(), std::move(shape), target->bytes(), nullptr);
    output_bytes_.push_back(target->bytes().data());
  }
  direct_.resize(outputs_.size());
  for (std::size_t i = 0; i < direct_.size(); ++i) direct_[i] = output_bytes_[i] == nullptr;  // states that lie where they lay
}

const std::byte* Run::in_arena(std::int64_t offset) const {
  if (arena_) return arena_->data() + offset;
  return device_arena_[static_cast<std::size_t>(offset / plan_->piece)].get() + offset % plan_->piece;
}

void Run::place_slots() {
  owners_.resize(state_.memory.slots.size());
  run_.memory.reserve(state_.memory.slots.size());
  for (const Slot& slot : state_.memory.slots) {
    const std::byte* bytes = nullptr;
    switch (slot.place) {
      case Slot::Place::input:
        bytes = inputs_[slot.index]->bytes().data();
        if (weights_[slot.index]) keep_owner(run_.memory.size(), *inputs_[slot.index]);
        break;
      case Slot::Place::constant:
        bytes = weights_in(slot).bytes().data();
        keep_owner(run_.memory.size(), weights_in(slot));
        break;
      case Slot::Place::prepared: break;
      case Slot::Place::arena: bytes = in_arena(plan_->offsets[slot.index]); break;
      case Slot::Place::output:
        bytes = output_bytes_[slot.index];
        direct_[slot.index] = true;
        break;
    }
    run_.memory.push_back(const_cast<std::byte*>(bytes));
  }
}

/// Regions know their weights by what owns the bytes; nobody else asks.
void Run::keep_owner(std::size_t slot, const Array& weights) {
  if (state_.regions.empty() || !weights.owner()) return;
  owners_[slot] = weights.owner();
  weight_owners_.insert(weights.owner().get());
}

/// Puts the prepared values in their slots.
void Run::prepare() {
  if (!parameters_) return pack_of_region();
  prepared_ = parameters_->prepared();
  if (!prepared_->complete) run_missing();
  place_prepared();
}

/// Computes the prepared values that are missing, but for what another program has computed. What none but they read is let go as soon as
/// they are there.
void Run::run_missing() {
  const std::scoped_lock lock(parameters_->preparing);
  prepared_ = parameters_->prepared();
  if (prepared_->complete) return;
  const PreparedPart& part = state_.prepared;
  const auto mine = std::make_shared<Prepared>(*prepared_);
  for (std::size_t value = 0; value < part.values.size(); ++value)
    if (part.values[value].kept) take_shared(*mine, {&value, 1});
  prepared_ = mine;
  place_prepared();
  const auto launches = mine->missing(part);
  std::vector<std::size_t> readers(part.values.size());
  for (const PreparedLaunch* launch : launches)
    for (const std::size_t value : launch->reads) ++readers[value];
  for (std::size_t done = 0; done < launches.size();) {
    compute(*mine, *launches[done]);
    for (const std::size_t value : launches[done]->reads)
      if (--readers[value] == 0 && !part.values[value].kept) mine->arrays[value].reset();
    report_progress("packing", ++done, launches.size());
  }
  mine->drop_unread(part);
  mine->complete = true;
  parameters_->set(mine);
  if (!storage_.on_host()) parameters_->let_go_but(state_.runs_read);
}

std::byte*& Run::memory_of(std::size_t prepared_value) {
  return run_.memory[static_cast<std::size_t>(state_.prepared.values[prepared_value].slot)];
}

/// Those values that other programs of the session have. Whether all are there.
bool Run::take_shared(Prepared& known, std::span<const std::size_t> values) {
  for (const std::size_t value : values) {
    if (known.arrays[value]) continue;
    known.arrays[value] = state_.session->shared.find(origins().of(state_.prepared.values[value].slot).name);
    if (known.arrays[value]) memory_of(value) = address(*known.arrays[value]);
  }
  return std::ranges::all_of(values, [&](std::size_t value) { return known.arrays[value] != nullptr; });
}

/// A launch that runs again may also write what is there: other runs are reading those bytes, so it gets memory of its own.
void Run::compute(Prepared& known, const PreparedLaunch& launch) {
  if (take_shared(known, launch.writes)) return;
  for (const std::size_t value : launch.writes) {
    known.arrays[value] = std::make_shared<Array>(storage_.make_lasting(state_.prepared.values[value].type));
    memory_of(value) = address(*known.arrays[value]);
  }
  run_launch(launch.step);
  for (ValueId v : state_.program.launches[launch.step].reads)  // or a file's weights would be in memory twice
    if (const Slot& slot = state_.memory.at(state_.slot_of(v)); slot.place != Slot::Place::prepared && storage_.on_host())
      release_mapped_pages(weights_in(slot).bytes());
  for (const std::size_t value : launch.writes)
    if (const Origin& origin = origins().of(state_.prepared.values[value].slot); !origin.name.empty())
      state_.session->shared.add(origin.name, known.arrays[value], origin.arrays);
}

/// In a region nothing is prepared but what packs: weights, which it knows by their owners, and what every step of a loop reads, for as
/// long as the loop runs.
void Run::pack_of_region() {
  if (prepared_) return;
  const auto mine = std::make_shared<Prepared>(state_.prepared);
  prepared_ = mine;
  for (const PreparedLaunch& launch : state_.prepared.launches) {
    const Slot& from = state_.memory.at(state_.slot_of(state_.program.launches[launch.step].reads[0]));
    if (from.place != Slot::Place::input || weights_[from.index]) pack_weights(*mine, launch, weights_in(from));
    else if (!stays_in_loop_.empty() && stays_in_loop_[from.index]) compute(*mine, launch);
  }
  place_prepared();
}

void Run::pack_weights(Prepared& known, const PreparedLaunch& launch, const Array& weights) {
  std::shared_ptr<const Array>& packed = known.arrays[launch.writes[0]];
  {
    const std::scoped_lock lock(state_.mutex);
    const auto it = state_.packed.find(launch.step);
    const bool is_known = it != state_.packed.end() && it->second.from.bytes().data() == weights.bytes().data();
    if (is_known && it->second.from.owner() == weights.owner()) packed = it->second.value;  // a new owner may bring new numbers
  }
  if (packed) return;
  compute(known, launch);
  const std::scoped_lock lock(state_.mutex);
  state_.packed[launch.step] = {weights, packed};
}

void Run::place_prepared() {
  for (std::size_t value = 0; value < prepared_->arrays.size(); ++value) {
    const std::shared_ptr<const Array>& array = prepared_->arrays[value];
    memory_of(value) = array ? address(*array) : nullptr;
    if (array) keep_owner(static_cast<std::size_t>(state_.prepared.values[value].slot), *array);
  }
}

void Run::execute() {
  prepare();
  if (state_.host_program) state_.host_program->run(run_);
  else execute_on_device();
}

void Run::run_launch(std::size_t launch) {
  if (state_.host_program) state_.host_program->run_launch(launch, run_);
  else run_on_device(state_.steps[launch]);
}

double Run::seconds_of(std::size_t launch) {
  if (!storage_.on_host()) return storage_.device().seconds([&] { run_launch(launch); });
  const auto begin = std::chrono::steady_clock::now();
  run_launch(launch);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void Run::time(int repeats, std::vector<LaunchReport>& reports) {
  prepare();
  for (int r = 0; r < repeats; ++r)
    for (std::size_t i = 0; i < state_.is_prepared.size(); ++i) {
      if (state_.is_prepared[i]) continue;
      run_.report = &reports[i];
      const double seconds = seconds_of(i);
      if (r == 0 || seconds < reports[i].seconds) reports[i].seconds = seconds;
    }
  run_.report = nullptr;
}

/// Outputs that are not computed where they are wanted.
void Run::copy_outputs() {
  for (std::size_t i = 0; i < outputs_.size(); ++i)
    if (!direct_[i])
      storage_.copy(output_bytes_[i], {run_.memory[static_cast<std::size_t>(state_.memory.outputs[i])], outputs_[i].bytes().size()});
}

std::vector<Array> Run::results() {
  copy_outputs();
  return std::move(outputs_);
}

std::vector<bool> Run::weights_among(std::span<const Array> operands) const {
  std::vector<bool> marks;
  for (const Array& operand : operands) marks.push_back(weight_owners_.count(operand.owner().get()) > 0);
  return marks;
}

std::vector<Array> Run::run_region(const Region& region, std::span<const Array> operands) {
  std::vector<const Array*> inputs;
  for (const Array& operand : operands) inputs.push_back(&operand);
  Run inner(*state_.regions.at(region.get()), std::move(inputs), weights_among(operands), run_.bindings, nullptr);
  inner.execute();
  return inner.results();
}

Origins& Run::origins() {
  if (!origins_) {
    std::vector<Array> inputs;
    if (parameters_) inputs = parameters_->arrays;
    else
      for (const Array* input : inputs_) inputs.push_back(*input);
    origins_.emplace(state_, std::move(inputs));
  }
  return *origins_;
}

const Array& Run::weights_in(const Slot& slot) const {
  switch (slot.place) {
    case Slot::Place::input: return *inputs_[slot.index];
    case Slot::Place::prepared: return *prepared_->arrays[slot.index];
    default: {
      const auto node = static_cast<std::int32_t>(slot.index);
      return storage_.on_host() ? *constant_value(state_.program.graph.node(node)) : state_.constants.at(node);
    }
  }
}

}  // namespace rlx
