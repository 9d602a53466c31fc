#pragma once
#include "backends/cpu/execute.h"
#include "rlx/session.h"
#include "runtime/arena.h"
#include "runtime/plan.h"

namespace rlx {

/// What all executables of a session share.
struct Session::State {
  explicit State(SessionOptions given);
  SessionOptions options;
  ThreadPool pool;
  cpu::Jit jit;
  cpu::PackedWeights packed;
};

/// Where a stored value lives.
struct Slot {
  enum class Place : std::uint8_t { input, constant, arena, output };
  Place place = Place::arena;
  ValueId value;
  std::size_t index = 0;  // input: of the graph's inputs; output: of its outputs; arena: of the memory plan
};

struct Executable::State {
  /// `inner`: of a region, where any operand may turn out to be a weight.
  State(std::shared_ptr<Session::State> session, const Graph& graph, cpu::Program lowered, bool inner = false);

  std::shared_ptr<Session::State> session;
  Graph source;  // as the user gave it
  cpu::Program program;
  std::vector<Slot> slots;
  std::vector<int> output_slots;  // of every output
  std::vector<cpu::Step> steps;
  MemoryPlan plan;
  std::unique_ptr<ArenaPool> arenas;
  mutable std::mutex mutex;  // of bound values and packed weights
  bool has_states = false;
  std::mutex turn;           // of runs of a graph with states
  std::vector<Array> bound;  // by input: parameters and states
  struct Packed {
    Array weights;  // what was packed: a run may still use those that set_param replaced
    std::shared_ptr<const void> panels;
  };
  std::map<const cpu::Step*, Packed> packed;
  std::map<const Graph*, std::unique_ptr<State>> regions;  // of its control flow ops

  /// To be called after parameters changed, with `mutex` held.
  void forget_packed();
  int slot_of(ValueId value) const;
  std::size_t input_index(std::string_view name) const;

 private:
  void assign_slots();
  void plan_arena();
  int in_place_candidate(const cpu::Launch& launch, ValueId written, int step, const std::vector<int>& last_use) const;
  std::map<ValueId, int> slot_by_value_;
};

/// What each launch of a program costs at these sizes; not timed.
std::vector<LaunchReport> launch_costs(const cpu::Program& program, const Bindings& bindings);

}  // namespace rlx
