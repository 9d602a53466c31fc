#pragma once
#include <functional>
#include <map>
#include <string_view>
#include <vector>

#include "lowering/plan.h"
#include "lowering/program.h"

namespace rlx {

/// Where a stored value lives.
struct Slot {
  enum class Place : std::uint8_t { input, constant, prepared, arena, output };
  Place place = Place::arena;
  ValueId value;
  Type type;
  std::size_t index = 0;  // input: of the graph's inputs; output: of its outputs; arena: of the blocks; prepared: of the prepared values
};

enum class Access : std::uint8_t { read, write, both };
struct Argument {
  int slot;
  Access access;
};

/// A value in the arena, from the launch that writes it to the last one that reads it.
struct ArenaBlock {
  int slot;
  int first, last;
  int in_place_of;  // the block whose memory it takes over at any sizes; -1: none
};

/// The memory that the launches of a program read and write.
struct ProgramSlots {
  std::vector<Slot> slots;
  std::vector<int> outputs;                      // the slot of every output
  std::vector<std::vector<Argument>> arguments;  // by launch
  std::vector<bool> overwrites;  // by input: a state whose next value, an output, may be written over it, element by element
  std::vector<ArenaBlock> blocks;
  std::map<ValueId, int> by_root;  // see Program::root

  const Slot& at(int slot) const { return slots[static_cast<std::size_t>(slot)]; }
};

/// By launch: whether it computes the same in every run, from parameters, constants and what other such launches write. `inner`: of a
/// region only what packs is so, as far as its operands stay.
std::vector<bool> prepared_launches(const Program& program, bool inner = false);

/// `prepared`: by launch, whether it runs once for all runs.
ProgramSlots assign_slots(const Program& program, const std::vector<bool>& prepared);

/// Places the blocks, which take so many bytes each, in an arena of such pieces.
MemoryPlan plan_memory(const ProgramSlots& slots, const std::function<std::int64_t(const Type&)>& bytes,
                       std::int64_t piece = largest_piece);

/// What a value takes at the bounds of its symbols. Throws Error when that has no number.
std::int64_t most_bytes(const Type& type);

}  // namespace rlx
