#include "runtime/origin.h"

#include <algorithm>

#include "ir/sources.h"

namespace rlx {
Origin origin_of(const Array& array) {
  return {fmt::format("{}+{}", static_cast<const void*>(array.bytes().data()), array.bytes().size()), {array}};
}

const Origin& Origins::of(int slot) {
  if (auto it = known_.find(slot); it != known_.end()) return it->second;
  Origin origin = found(slot);
  return known_[slot] = std::move(origin);
}

Origin Origins::found(int slot) {
  const Slot& at = state_.memory.at(slot);
  switch (at.place) {
    case Slot::Place::input: return origin_of(parameters_[at.index]);
    case Slot::Place::constant: return origin_of(*constant_value(state_.program.graph.node(static_cast<std::int32_t>(at.index))));
    case Slot::Place::prepared: return computed(slot, at.index);
    default: return {};
  }
}

Origin Origins::computed(int slot, std::size_t value) {
  const auto& launches = state_.prepared.launches;
  const auto launch = std::ranges::find_if(launches, [&](const PreparedLaunch& l) { return std::ranges::count(l.writes, value) > 0; });
  const cpu::Step* const step = launch == launches.end() ? nullptr : launch->step;
  if (!step || step->launch->kind != Launch::Kind::kernel) return {};
  Origin origin;
  for (std::size_t i = 0; i < step->kernels.size(); ++i)
    if (!add(origin, step->kernels[i], step->launch->kernels[i], slot)) return {};
  return origin;
}

/// What a kernel that writes to `slot` is, and from where on in which values it counts. False where nobody can tell.
bool Origins::add(Origin& origin, const KernelStep& step, const GeneratedKernel& kernel, int slot) {
  origin.name += kernel.text.name;
  for (std::size_t i = 0; i < step.buffers.size(); ++i) {
    origin.name += fmt::format("|{}:", kernel.first[i]);
    if (kernel.kernel.buffers[i].written) {
      origin.name += step.buffers[i] == slot ? "this" : "other";
      continue;
    }
    const Origin& read = of(step.buffers[i]);
    if (read.name.empty()) return false;
    origin.name += fmt::format("({})", read.name);
    for (const Array& array : read.arrays)
      if (std::ranges::none_of(origin.arrays, [&](const Array& known) { return known.bytes().data() == array.bytes().data(); }))
        origin.arrays.push_back(array);
  }
  return true;
}

}  // namespace rlx
