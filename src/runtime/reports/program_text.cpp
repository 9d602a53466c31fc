#include "runtime/reports/program_text.h"

#include <algorithm>

namespace rlx {
namespace {

std::string place(const Executable::State& state, const Slot& slot) {
  switch (slot.place) {
    case Slot::Place::input: return "input '" + state.source.inputs()[slot.index].first.name + "'";
    case Slot::Place::constant: return "constant";
    case Slot::Place::prepared: return "prepared";
    case Slot::Place::output: return "output '" + state.source.outputs()[slot.index].first + "'";
    case Slot::Place::arena: return fmt::format("arena+{}", state.plan.offsets[slot.index]);
  }
  return "";
}

/// What a value takes, by its symbols.
std::string bytes_text(const Type& type) {
  const int bits = info(type.dtype).bits;
  return bits % 8 == 0 ? (type.size() * Dim(bits / 8)).to_string() + " bytes" : (type.size() * Dim(bits)).to_string() + " bits";
}

std::string slot_line(const Executable::State& state, std::size_t index) {
  const Slot& slot = state.memory.slots[index];
  const Type& type = slot.type;
  std::string line = fmt::format("slot {}: {} in {} at {}", index, type.to_string(), bytes_text(type), place(state, slot));
  if (slot.place == Slot::Place::arena)
    if (const int before = state.memory.blocks[slot.index].in_place_of; before >= 0)
      line += fmt::format(", in place of slot {}", state.memory.blocks[static_cast<std::size_t>(before)].slot);
  return line + "\n";
}

std::string_view access_text(Access access) { return access == Access::read ? "reads " : access == Access::write ? "writes" : "both  "; }

/// With the values that lie in the slot, as the launch sees them.
std::string argument_line(const Executable::State& state, const Launch& launch, const Argument& argument) {
  std::vector<ValueId> values;
  for (const auto* list : {&launch.reads, &launch.writes})
    for (ValueId v : *list)
      if (state.slot_of(v) == argument.slot && !std::ranges::count(values, v)) values.push_back(v);
  std::string text;
  for (ValueId v : values)
    text += fmt::format("{} %{}{}: {}", text.empty() ? "" : ",", v.node, state.program.packed.contains(v) ? " packed" : "",
                        state.program.type(v).to_string());
  return fmt::format("  {} slot {} at {}:{}\n", access_text(argument.access), argument.slot, place(state, state.memory.at(argument.slot)),
                     text);
}

/// The values of a tile lie in no slot: the code of a claim calls the kernel on it.
std::string kernel_line(const Executable::State& state, const GeneratedKernel& kernel) {
  std::string buffers;
  for (const KernelBuffer& buffer : kernel.kernel.buffers) {
    const auto slot = state.memory.by_root.find(state.program.root(buffer.value));
    buffers += slot == state.memory.by_root.end() ? " tile" : fmt::format(" {}", slot->second);
  }
  std::string grid;
  for (const GridLoop& loop : kernel.text.grid) {
    const std::string extent = kernel.kernel.extent(loop.loop).to_string();
    grid += (grid.empty() ? "" : " x ") + (loop.step == 1 ? extent : fmt::format("({})/{}", extent, loop.step));
  }
  if (kernel.kernel.tile) grid = "a tile";
  return fmt::format("  kernel {} over {}, buffers{}\n", kernel.text.name, grid.empty() ? "1" : grid, buffers);
}

}  // namespace

std::string program_text(const Executable::State& state) {
  std::string text = fmt::format("arena: {} bytes at the bounds of the symbols\n", state.plan.bytes);
  for (const auto& [symbol, bound] : state.source.symbols()) text += fmt::format("symbol {}: at most {}\n", symbol, bound);
  for (std::size_t slot = 0; slot < state.memory.slots.size(); ++slot) text += slot_line(state, slot);
  for (std::size_t l = 0; l < state.program.launches.size(); ++l) {
    const Launch& launch = state.program.launches[l];
    text += launch.name + (state.is_prepared[l] ? " once" : "") + "\n";
    for (const Argument& argument : state.memory.arguments[l]) text += argument_line(state, launch, argument);
    for (const GeneratedKernel& kernel : launch.kernels) text += kernel_line(state, kernel);
  }
  for (const auto& [region, inner] : state.regions) text += fmt::format("region '{}'\n", region->name()) + program_text(*inner);
  return text;
}

}  // namespace rlx
