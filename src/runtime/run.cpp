#include "runtime/run.h"

#include <chrono>
#include <cstring>

#include "ir/sources.h"

namespace rlx {

Run::Run(Executable::State& state, std::vector<Array> inputs, std::vector<bool> weights, const Bindings& bindings,
         std::shared_ptr<Preparation> preparation, const std::vector<const Target*>& targets)
    : state_(state),
      arena_(state.arenas->borrow()),
      preparation_(std::move(preparation)),
      inputs_(std::move(inputs)),
      weights_(std::move(weights)) {
  run_.program = &state_.program;
  run_.pool = &state_.session->pool;
  run_.level = cpu::cpu_level();
  run_.bindings = bindings;
  for (const std::string& symbol : state_.program.symbols) run_.symbols.push_back(bindings.at(symbol));
  run_.run_region = [this](const Region& region, std::span<const Array> operands) { return run_region(region, operands); };
  run_.packed_weights = &state_.session->packed;
  run_.packed = [this](const cpu::Step& step, const cpu::PackWeights& pack) { return packed(step, pack); };
  make_outputs(targets);
  place_slots();
}

void Run::make_outputs(const std::vector<const Target*>& targets) {
  for (const auto& [name, value] : state_.source.outputs()) {
    std::vector<std::int64_t> shape;
    for (const Dim& dim : value.shape()) shape.push_back(dim.evaluate(run_.bindings));
    const Target* target = targets.empty() ? nullptr : targets[outputs_.size()];
    if (!target) {
      outputs_.emplace_back(value.dtype(), std::move(shape));
      output_bytes_.push_back(outputs_.back().mutable_bytes().data());
      continue;
    }
    const std::int64_t wanted = value.type().size().evaluate(run_.bindings), width = bytes_for(value.dtype(), 1);
    const auto room = static_cast<std::int64_t>(target->bytes().size()) / width;
    if (room != wanted) fail("output '{}': memory for {} values, {} are computed", name, room, wanted);
    outputs_.emplace_back(value.dtype(), std::move(shape), target->bytes(), nullptr);
    output_bytes_.push_back(target->bytes().data());
  }
  direct_.assign(outputs_.size(), false);
}

void Run::place_slots() {
  const auto add = [this](const std::byte* bytes, std::shared_ptr<const void> weights) {
    run_.memory.push_back(const_cast<std::byte*>(bytes));
    if (weights) weight_owners_.insert(weights.get());
    run_.weights.push_back(std::move(weights));
  };
  for (const Slot& slot : state_.slots) {
    switch (slot.place) {
      case Slot::Place::input: add(inputs_[slot.index].bytes().data(), weights_[slot.index] ? inputs_[slot.index].owner() : nullptr); break;
      case Slot::Place::constant: {
        const Array& value = *constant_value(state_.program.graph.node(static_cast<std::int32_t>(slot.index)));
        add(value.bytes().data(), value.owner());
        break;
      }
      case Slot::Place::prepared: add(nullptr, nullptr); break;
      case Slot::Place::arena: add(arena_->data() + state_.plan.offsets[slot.index], nullptr); break;
      case Slot::Place::output:
        add(output_bytes_[slot.index], nullptr);
        direct_[slot.index] = true;
        break;
    }
  }
}

/// Puts the prepared values in their slots.
void Run::prepare() {
  if (!preparation_) return;
  const std::scoped_lock lock(preparation_->mutex);
  prepared_ = preparation_->arrays;
  for (std::size_t value = 0; value < prepared_.size(); ++value) place_prepared(value);
  if (!preparation_->complete) run_missing();
}

/// Computes the prepared values that are missing.
void Run::run_missing() {
  const auto launches = preparation_->missing(state_.prepared);
  // A launch that runs again may also write what is there: other runs are reading those bytes, so it gets memory of its own.
  for (const PreparedLaunch* launch : launches)
    for (std::size_t value : launch->writes) {
      std::vector<std::int64_t> shape;
      for (const Dim& dim : state_.prepared.values[value].type.shape) shape.push_back(dim.value());
      prepared_[value] = std::make_shared<Array>(state_.prepared.values[value].type.dtype, std::move(shape));
      place_prepared(value);
    }
  for (const PreparedLaunch* launch : launches) cpu::execute(*launch->step, run_);
  preparation_->arrays = prepared_;
  preparation_->complete = true;
  preparation_->drop_unread(state_.prepared);
}

void Run::place_prepared(std::size_t value) {
  static std::byte nowhere;  // of values that are only read as panels
  const auto slot = static_cast<std::size_t>(state_.prepared.values[value].slot);
  const std::shared_ptr<const Array>& array = prepared_[value];
  run_.memory[slot] = array ? const_cast<std::byte*>(array->bytes().data()) : &nowhere;
  run_.weights[slot] = array ? array->owner() : nullptr;
  if (array) weight_owners_.insert(array->owner().get());
}

void Run::execute() {
  const cpu::FlushDenormals flush;
  prepare();
  for (std::size_t i = 0; i < state_.steps.size(); ++i)
    if (!state_.is_prepared[i]) cpu::execute(state_.steps[i], run_);
}

std::vector<double> Run::time(int repeats) {
  const cpu::FlushDenormals flush;
  prepare();
  std::vector<double> best(state_.steps.size(), 0);
  for (int r = 0; r < repeats; ++r)
    for (std::size_t i = 0; i < state_.steps.size(); ++i) {
      if (state_.is_prepared[i]) continue;
      const auto begin = std::chrono::steady_clock::now();
      cpu::execute(state_.steps[i], run_);
      const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
      if (r == 0 || seconds < best[i]) best[i] = seconds;
    }
  return best;
}

std::vector<Array> Run::results() {
  for (std::size_t i = 0; i < outputs_.size(); ++i)
    if (!direct_[i])
      std::memcpy(output_bytes_[i], run_.memory[static_cast<std::size_t>(state_.output_slots[i])], outputs_[i].bytes().size());
  return std::move(outputs_);
}

std::vector<Array> Run::run_region(const Region& region, std::span<const Array> operands) {
  std::vector<bool> weights;
  for (const Array& operand : operands) weights.push_back(weight_owners_.count(operand.owner().get()) > 0);
  Run inner(*state_.regions.at(region.get()), {operands.begin(), operands.end()}, std::move(weights), run_.bindings, nullptr);
  inner.execute();
  return inner.results();
}

/// The panels of a right operand that stays from run to run; null for one that does not, and for a product that runs once.
std::shared_ptr<const void> Run::packed(const cpu::Step& step, const cpu::PackWeights& pack) {
  if (state_.is_prepared[static_cast<std::size_t>(&step - state_.steps.data())]) return nullptr;
  const Slot& slot = state_.slots[static_cast<std::size_t>(step.b)];
  if (slot.place == Slot::Place::input && !weights_[slot.index]) return nullptr;
  if (auto panels = known_panels(step, slot)) return panels;
  auto panels = pack(weights_in(slot));
  keep_panels(step, slot, panels);
  return panels;
}

const Array& Run::weights_in(const Slot& slot) const {
  switch (slot.place) {
    case Slot::Place::input: return inputs_[slot.index];
    case Slot::Place::prepared: return *prepared_[slot.index];
    default: return *constant_value(state_.program.graph.node(static_cast<std::int32_t>(slot.index)));
  }
}

std::shared_ptr<const void> Run::known_panels(const cpu::Step& step, const Slot& slot) const {
  if (slot.place == Slot::Place::prepared) {
    const std::scoped_lock lock(preparation_->mutex);
    const auto it = preparation_->panels.find(&step);
    return it == preparation_->panels.end() ? nullptr : it->second;
  }
  const std::scoped_lock lock(state_.mutex);
  const auto it = state_.packed.find(&step);
  return it != state_.packed.end() && it->second.weights.bytes().data() == weights_in(slot).bytes().data() ? it->second.panels : nullptr;
}

void Run::keep_panels(const cpu::Step& step, const Slot& slot, std::shared_ptr<const void> panels) {
  if (slot.place == Slot::Place::prepared) {
    const std::scoped_lock lock(preparation_->mutex);
    preparation_->panels[&step] = std::move(panels);
    preparation_->drop_unread(state_.prepared);
    return;
  }
  const std::scoped_lock lock(state_.mutex);
  state_.packed[&step] = {weights_in(slot), std::move(panels)};
}

}  // namespace rlx
