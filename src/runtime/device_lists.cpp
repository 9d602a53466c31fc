#include "runtime/device_lists.h"

#include <algorithm>

#include "runtime/executable.h"

namespace rlx {
namespace {

/// Finds the order of steps, from the first to the last.
class StepOrder {
 public:
  StepOrder(const ProgramSlots& slots, const std::vector<std::size_t>& state_of_output)
      : slots_(slots), memory_(slots.slots.size()), uses_(slots.slots.size()), before_(slots.arguments.size()) {
    for (std::size_t slot = 0; slot < memory_.size(); ++slot) memory_[slot] = memory_of(slots.slots[slot], slot, state_of_output);
  }

  std::vector<std::vector<int>> find() {
    std::vector<std::vector<int>> order;
    for (std::size_t step = 0; step < slots_.arguments.size(); ++step) {
      std::vector<bool> wanted(step);
      for (const Argument& argument : slots_.arguments[step]) want(wanted, argument);
      for (const ArenaBlock& block : slots_.blocks)
        if (block.first == static_cast<int>(step)) want_ended(wanted, block);
      order.push_back(reduced(step, wanted));
      for (const Argument& argument : slots_.arguments[step]) note(static_cast<int>(step), argument);
    }
    return order;
  }

 private:
  struct Uses {
    std::vector<int> writers, readers;  // the last writer, if there is one, and who read since then
    std::vector<int> all;
  };

  /// A state's next value may be written where the state lies: both are one memory.
  std::size_t memory_of(const Slot& slot, std::size_t number, const std::vector<std::size_t>& state_of_output) const {
    if (slot.place != Slot::Place::output) return number;
    const auto is_state = [&](const Slot& other) {
      return other.place == Slot::Place::input && other.index == state_of_output[slot.index];
    };
    const auto state = std::ranges::find_if(slots_.slots, is_state);
    return state == slots_.slots.end() ? number : static_cast<std::size_t>(state - slots_.slots.begin());
  }
  Uses& uses(int slot) { return uses_[memory_[static_cast<std::size_t>(slot)]]; }

  void want(std::vector<bool>& wanted, const Argument& argument) {
    const Uses& before = uses(argument.slot);
    for (const int step : before.writers) wanted[static_cast<std::size_t>(step)] = true;
    if (argument.access == Access::read) return;
    for (const int step : before.readers) wanted[static_cast<std::size_t>(step)] = true;
  }

  /// It may lie where what has ended lay, or what it takes over.
  void want_ended(std::vector<bool>& wanted, const ArenaBlock& begun) {
    for (std::size_t i = 0; i < slots_.blocks.size(); ++i)
      if (const ArenaBlock& block = slots_.blocks[i]; block.last < begun.first || static_cast<int>(i) == begun.in_place_of)
        for (const int user : uses(block.slot).all) wanted[static_cast<std::size_t>(user)] = true;
  }

  void note(int step, const Argument& argument) {
    Uses& mine = uses(argument.slot);
    mine.all.push_back(step);
    if (argument.access == Access::read) return mine.readers.push_back(step);
    mine.writers = {step};  // it comes after those before it
    mine.readers.clear();
  }

  std::vector<int> reduced(std::size_t step, const std::vector<bool>& wanted) {
    std::vector<int> kept;
    std::vector<bool>& before = before_[step];
    before.resize(step);
    for (std::size_t other = step; other-- > 0;) {
      if (!wanted[other] || before[other]) continue;
      kept.push_back(static_cast<int>(other));
      before[other] = true;
      for (std::size_t i = 0; i < other; ++i)
        if (before_[other][i]) before[i] = true;
    }
    return kept;
  }

  const ProgramSlots& slots_;
  std::vector<std::size_t> memory_;        // by slot: the slot that stands for its memory
  std::vector<Uses> uses_;                 // by such a slot
  std::vector<std::vector<bool>> before_;  // by step: those that it comes after
};

void add_step(DeviceList& list, const LaunchStep& step, const std::vector<int>& after, std::vector<int>& last) {
  for (std::size_t k = 0; k < step.kernels.size(); ++k) {
    DeviceList::Kernel kernel{&step.kernels[k], step.launch->kernels[k].number, {}};
    if (k > 0) kernel.after.push_back(static_cast<int>(list.kernels.size()) - 1);
    for (const int other : k == 0 ? after : std::vector<int>{})
      if (const auto at = static_cast<std::size_t>(other); at >= list.begin && last[at] >= 0) kernel.after.push_back(last[at]);
    list.buffers += kernel.step->buffers.size();
    list.kernels.push_back(std::move(kernel));
  }
}

}  // namespace

std::vector<std::vector<int>> step_order(const ProgramSlots& slots, const std::vector<std::size_t>& state_of_output) {
  return StepOrder(slots, state_of_output).find();
}

std::vector<DeviceList> device_lists(std::span<const LaunchStep> steps, const std::vector<bool>& prepared,
                                     const std::vector<std::vector<int>>& order) {
  std::vector<DeviceList> lists;
  std::vector<int> last(steps.size(), -1);  // by step: its last kernel in the list
  bool open = false;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (prepared[i]) continue;
    const bool of_kernels = steps[i].launch->kind == Launch::Kind::kernel && !steps[i].kernels.empty();
    if (of_kernels) {
      if (!open) lists.push_back({i, i, {}});
      add_step(lists.back(), steps[i], order[i], last);
      last[i] = static_cast<int>(lists.back().kernels.size()) - 1;
      lists.back().end = i + 1;
    }
    open = of_kernels;
  }
  return lists;
}

}  // namespace rlx
