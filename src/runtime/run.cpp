#include "runtime/run.h"

#include <chrono>
#include <cstring>

#include "ir/sources.h"

namespace rlx {

Run::Run(Executable::State& state, std::vector<Array> inputs, std::vector<bool> weights, const Bindings& bindings,
         const std::vector<const Target*>& targets)
    : state_(state), arena_(state.arenas->borrow()), inputs_(std::move(inputs)), weights_(std::move(weights)) {
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
      case Slot::Place::arena: add(arena_->data() + state_.plan.offsets[slot.index], nullptr); break;
      case Slot::Place::output:
        add(output_bytes_[slot.index], nullptr);
        direct_[slot.index] = true;
        break;
    }
  }
}

void Run::execute() {
  const cpu::FlushDenormals flush;
  for (const cpu::Step& step : state_.steps) cpu::execute(step, run_);
}

std::vector<double> Run::time(int repeats) {
  const cpu::FlushDenormals flush;
  std::vector<double> best(state_.steps.size(), 0);
  for (int r = 0; r < repeats; ++r)
    for (std::size_t i = 0; i < state_.steps.size(); ++i) {
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
  Run inner(*state_.regions.at(region.get()), {operands.begin(), operands.end()}, std::move(weights), run_.bindings);
  inner.execute();
  return inner.results();
}

/// The panels of a right operand that stays from run to run; null for one that does not.
std::shared_ptr<const void> Run::packed(const cpu::Step& step, const cpu::PackWeights& pack) {
  const Slot& slot = state_.slots[static_cast<std::size_t>(step.b)];
  if (slot.place == Slot::Place::input && !weights_[slot.index]) return nullptr;
  const Array& weights = slot.place == Slot::Place::input
                             ? inputs_[slot.index]
                             : *constant_value(state_.program.graph.node(static_cast<std::int32_t>(slot.index)));
  {
    const std::scoped_lock lock(state_.mutex);
    const auto& mine = state_.packed[&step];
    if (mine.panels && mine.weights.bytes().data() == weights.bytes().data()) return mine.panels;
  }
  auto panels = pack(weights);
  const std::scoped_lock lock(state_.mutex);
  state_.packed[&step] = {weights, panels};
  return panels;
}

}  // namespace rlx
