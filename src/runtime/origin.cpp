#include "runtime/origin.h"

#include <algorithm>

#include "ir/sources.h"
#include "lowering/program_file/writer.h"

namespace rlx {
namespace {

std::string packing_text(const Launch& launch) {
  Blobs none;
  ProgramWriter way(none);
  launch.claimed->write(way);
  return fmt::format("{} {} ", launch.claimed->kind(), way.bytes());
}

}  // namespace

Origin origin_of(const Array& array) {
  if (!array.owner()) return {};
  const std::span<const std::byte> bytes = DeviceBytes::place(array);
  return {fmt::format("{}+{} {}", static_cast<const void*>(bytes.data()), bytes.size(),
                      static_cast<const void*>(DeviceBytes::backend_of(array))),
          {array}};
}

const Origin& Origins::of(int slot) {
  if (auto it = known_.find(slot); it != known_.end()) return it->second;
  Origin origin = found(slot);
  return known_[slot] = std::move(origin);
}

Origin Origins::found(int slot) {
  const Slot& at = state_.memory.at(slot);
  switch (at.place) {
    case Slot::Place::input: return origin_of(inputs_[at.index]);
    case Slot::Place::constant: return origin_of(*constant_value(state_.program.graph.node(static_cast<std::int32_t>(at.index))));
    case Slot::Place::prepared: return computed(slot, at.index);
    default: return {};
  }
}

Origin Origins::computed(int slot, std::size_t value) {
  const auto& launches = state_.prepared.launches;
  const auto launch = std::ranges::find_if(launches, [&](const PreparedLaunch& l) { return std::ranges::count(l.writes, value) > 0; });
  if (launch == launches.end()) return {};
  const Launch& computing = state_.program.launches[launch->step];
  Origin origin{state_.prepared.values[value].type.to_string() + " ", {}};  // one kernel may compute any number of elements
  if (computing.packed) {
    origin.name += packing_text(computing);
    if (!add_read(origin, state_.slot_of(computing.reads[0]))) return {};
  } else if (computing.kind != Launch::Kind::kernel) {
    return {};
  }
  for (const GeneratedKernel& kernel : computing.kernels)
    if (!add(origin, kernel, slot)) return {};
  const auto [low, high] = content_hash(std::as_bytes(std::span(origin.name)));  // as what is computed from it has its name in turn
  origin.name = fmt::format("{:016x}{:016x}", low, high);
  return origin;
}

/// Adds what is read. False where nobody can tell what it is.
bool Origins::add_read(Origin& origin, int slot) {
  const Origin& read = of(slot);
  origin.name += fmt::format("({})", read.name);
  for (const Array& array : read.arrays)
    if (std::ranges::none_of(origin.arrays, [&](const Array& known) { return address(known) == address(array); }))
      origin.arrays.push_back(array);
  return !read.name.empty();
}

/// What a kernel that writes to `slot` is, and from where on in which values it counts. False where nobody can tell.
bool Origins::add(Origin& origin, const GeneratedKernel& kernel, int slot) {
  origin.name += kernel.text.name;
  for (std::size_t i = 0; i < kernel.kernel.buffers.size(); ++i) {
    const KernelBuffer& buffer = kernel.kernel.buffers[i];
    const int its = state_.slot_of(buffer.value);
    origin.name += fmt::format("|{}:", kernel.first[i]);
    if (buffer.written) origin.name += its == slot ? "this" : "other";
    else if (!add_read(origin, its)) return false;
  }
  return true;
}

}  // namespace rlx
