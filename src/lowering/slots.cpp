#include "lowering/slots.h"

#include <algorithm>

#include "base/checked.h"
#include "ir/sources.h"
#include "passes/run_invariant.h"

namespace rlx {
namespace {

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

class SlotAssignment {
 public:
  SlotAssignment(const Program& program, const std::vector<bool>& prepared) : program_(program), prepared_(prepared) {}

  ProgramSlots run() {
    add_slots();
    for (const Launch& launch : program_.launches) result_.arguments.push_back(arguments(launch));
    find_overwritten();
    find_blocks();
    return std::move(result_);
  }

 private:
  const Graph& graph() const { return program_.graph; }
  int slot_of(ValueId value) const { return result_.by_root.at(program_.root(value)); }
  bool has_slot(ValueId value) const { return result_.by_root.count(program_.root(value)) > 0; }

  void add(ValueId value, Slot::Place place, std::size_t index) { add(value, program_.type(value), place, index); }
  void add(ValueId value, const Type& type, Slot::Place place, std::size_t index) {
    result_.by_root[value] = static_cast<int>(result_.slots.size());
    result_.slots.push_back({place, value, type, index});
  }

  void add_slots() {
    for (std::size_t i = 0; i < graph().inputs().size(); ++i) add(graph().inputs()[i].second.id(), Slot::Place::input, i);
    for (std::int32_t id = 0; id < static_cast<std::int32_t>(graph().size()); ++id)
      if (constant_value(graph().node(id))) add({id, 0}, Slot::Place::constant, static_cast<std::size_t>(id));
    std::size_t known = 0;
    for (std::size_t l = 0; l < program_.launches.size(); ++l)
      for (ValueId v : prepared_[l] ? program_.launches[l].writes : std::vector<ValueId>{}) add(v, Slot::Place::prepared, known++);
    // A computed value that is an output is computed right where the caller reads it; its further names are copies.
    for (std::size_t i = 0; i < graph().outputs().size(); ++i)
      if (const ValueId v = graph().outputs()[i].second.id(); !has_slot(v)) add(program_.root(v), Slot::Place::output, i);
    for (const Launch& launch : program_.launches) {
      for (ValueId v : launch.writes)
        if (!has_slot(v)) add(program_.root(v), Slot::Place::arena, 0);
      for (const auto& [v, type] : launch.scratch) add(v, type, Slot::Place::arena, 0);
    }
    for (const auto& [name, value] : graph().outputs()) result_.outputs.push_back(slot_of(value.id()));
  }

  std::vector<Argument> arguments(const Launch& launch) const {
    std::vector<Argument> all;
    const auto add = [&](ValueId value, Access access) {
      const int slot = slot_of(value);
      const auto known = std::ranges::find_if(all, [&](const Argument& argument) { return argument.slot == slot; });
      if (known == all.end()) all.push_back({slot, access});
      else if (known->access != access) known->access = Access::both;
    };
    for (ValueId v : launch.reads) add(v, Access::read);
    for (ValueId v : launch.writes) add(v, Access::write);
    for (const auto& [v, type] : launch.scratch) add(v, Access::both);
    return all;
  }

  /// The slot whose memory code written by hand writes its result to where it may; -1 for other launches.
  int taken_over(const Launch& launch) const {
    if (launch.replaced < 0) return -1;
    const ValueId operand = launch.reads[static_cast<std::size_t>(launch.replaced)];
    const Type &from = graph().type(operand), &to = graph().type(launch.writes[0]);
    return from == to ? slot_of(operand) : -1;
  }

  /// Whether `written` may lie where the launch reads `read`: an operand of the same size that it reads at the very index it writes only.
  bool may_replace(const Launch& launch, ValueId written, ValueId read) const {
    if (std::ranges::count_if(launch.reads, [&](ValueId v) { return slot_of(v) == slot_of(read); }) != 1) return false;
    if (const int slot = taken_over(launch); slot >= 0) return slot == slot_of(read);
    const Kernel* kernel = storing_kernel(launch);
    const KernelStore* store = kernel ? store_of(*kernel, written) : nullptr;
    if (!store) return false;
    const auto buffer = std::ranges::find_if(kernel->buffers, [&](const KernelBuffer& b) { return !b.written && b.value == read; });
    if (buffer == kernel->buffers.end()) return false;
    const Type &from = graph().type(read), &to = graph().type(written);
    if (!(from.size() == to.size()) || info(from.dtype).bits != info(to.dtype).bits) return false;
    return reads_where_it_stores(*kernel, static_cast<std::size_t>(buffer - kernel->buffers.begin()), *store);
  }

  /// A block that `written` may take over, read for the last time by this launch. The blocks of a product do not overlap, so that its
  /// epilogue may do so too with what the product itself does not read.
  int in_place_candidate(const Launch& launch, ValueId written, int step, const std::vector<int>& last_use) const {
    for (ValueId read : launch.reads) {
      const int slot = slot_of(read);
      if (result_.at(slot).place != Slot::Place::arena || last_use[static_cast<std::size_t>(slot)] != step) continue;
      if (may_replace(launch, written, read)) return slot;
    }
    return -1;
  }

  void find_overwritten() {
    result_.overwrites.assign(graph().inputs().size(), false);
    for (std::size_t i = 0; i < graph().inputs().size(); ++i) {
      const auto& [input, state] = graph().inputs()[i];
      for (std::size_t o = 0; o < graph().outputs().size() && input.kind == InputKind::state; ++o) {
        const int next = result_.outputs[o];
        const Slot& slot = result_.at(next);
        if (graph().outputs()[o].first != input.name || slot.place != Slot::Place::output || slot.index != o) continue;
        result_.overwrites[i] = is_read_before(slot_of(state.id()), next);
      }
    }
  }

  /// Whether all that a state's slot holds is read by the time that its next value is written.
  bool is_read_before(int state, int next) const {
    if (std::ranges::count(result_.outputs, state) > 0) return false;  // a result, which is copied at the end
    for (auto launch = program_.launches.rbegin(); launch != program_.launches.rend(); ++launch) {
      const auto written = std::ranges::find_if(launch->writes, [&](ValueId v) { return slot_of(v) == next; });
      const bool writes = written != launch->writes.end();
      for (ValueId read : launch->reads)
        if (slot_of(read) == state && !(writes && may_replace(*launch, *written, read))) return false;
      if (writes) return true;
    }
    return false;
  }

  /// The last launch that uses each slot.
  std::vector<int> last_uses() const {
    std::vector<int> last(result_.slots.size(), -1);
    for (std::size_t l = 0; l < result_.arguments.size(); ++l)
      for (const Argument& argument : result_.arguments[l]) last[static_cast<std::size_t>(argument.slot)] = static_cast<int>(l);
    return last;
  }

  void find_blocks() {
    const std::vector<int> last = last_uses();
    std::vector<bool> taken(result_.slots.size(), false);
    for (std::size_t l = 0; l < program_.launches.size(); ++l) {
      // What lives longest comes first at a place that one of them may take over: residuals then stay where they are from layer to layer.
      std::vector<ValueId> writes = program_.launches[l].writes;
      for (const auto& [v, type] : program_.launches[l].scratch) writes.push_back(v);
      std::ranges::stable_sort(writes, std::greater(), [&](ValueId v) { return last[static_cast<std::size_t>(slot_of(v))]; });
      for (ValueId v : writes) {
        const int at = slot_of(v);
        Slot& slot = result_.slots[static_cast<std::size_t>(at)];
        if (slot.place != Slot::Place::arena) continue;
        ArenaBlock block{at, static_cast<int>(l), last[static_cast<std::size_t>(at)], -1};
        const int reuse = in_place_candidate(program_.launches[l], v, static_cast<int>(l), last);
        if (reuse >= 0 && !taken[static_cast<std::size_t>(reuse)]) {
          taken[static_cast<std::size_t>(reuse)] = true;
          block.in_place_of = static_cast<int>(result_.at(reuse).index);
        }
        slot.index = result_.blocks.size();
        result_.blocks.push_back(block);
      }
    }
  }

  const Program& program_;
  const std::vector<bool>& prepared_;
  ProgramSlots result_;
};

}  // namespace

std::vector<bool> prepared_launches(const Program& program, bool inner) {
  const std::vector<bool> invariant = run_invariant_nodes(program.graph);
  std::vector<bool> prepared;
  for (const Launch& launch : program.launches)
    prepared.push_back(launch.packed || (!inner && std::ranges::all_of(launch.writes, [&](ValueId v) {
                         return invariant[static_cast<std::size_t>(v.node)];
                       })));
  return prepared;
}

ProgramSlots assign_slots(const Program& program, const std::vector<bool>& prepared) { return SlotAssignment(program, prepared).run(); }

MemoryPlan plan_memory(const ProgramSlots& slots, const std::function<std::int64_t(const Type&)>& bytes, std::int64_t piece) {
  std::vector<Lifetime> lifetimes;
  for (const ArenaBlock& block : slots.blocks)
    lifetimes.push_back({bytes(slots.at(block.slot).type), block.first, block.last, block.in_place_of});
  return plan_memory(lifetimes, piece);
}

std::int64_t most_bytes(const Type& type) {
  const std::int64_t count = type.size().upper();
  if (!checked_mul(count, std::int64_t{info(type.dtype).bits})) fail("memory: {} has too many elements ({})", type.to_string(), count);
  return bytes_for(type.dtype, count);
}

}  // namespace rlx
