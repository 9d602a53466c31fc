#pragma once
#include <atomic>

#include "backends/backend.h"
#include "lowering/slots.h"
#include "passes/index_checks.h"
#include "passes/precision.h"
#include "rlx/session.h"
#include "runtime/device_lists.h"
#include "runtime/memory/arena.h"
#include "runtime/memory/storage.h"
#include "runtime/prepared.h"
#include "runtime/turns.h"

namespace rlx {

/// What all executables of a session share.
struct Session::State {
  State(const Device& on, SessionOptions given);
  Device device;
  SessionOptions options;
  const TargetDevice target;
  Storage storage;
  std::optional<Session> host;  // of a device with memory of its own: what computes that which no kernel does
  const int threads;
  std::unique_ptr<HostCode> code;  // null: of a device with memory of its own, or one that takes whole graphs
  SharedValues shared;
  mutable std::mutex counting;
  CompileCounters on_device;  // of the kernels of a device with memory of its own

  /// Of a session on Device::automatic: the one that computes. The first graph chooses its device.
  const Session& chosen_for(const Graph& graph);
  /// Null: no graph has, or the device was named.
  const Session* chosen_already() const;

  mutable std::mutex choosing;
  std::optional<Session> chosen;
  std::vector<DeviceEstimate> estimates;
};

/// What a run checks before it begins, where the session asks for that.
struct CompiledIndexChecks {
  Executable places;  // from the integer inputs to the least and the largest place of each check
  std::vector<IndexCheck> checks;
};

/// Whether an array has just so many owners, and what others did with it before they let it go has happened.
inline bool has_owners(const Array& array, long count) {
  if (array.owner().use_count() != count) return false;
  std::atomic_thread_fence(std::memory_order_acquire);  // the count alone orders nothing
  return true;
}

/// Executables of nodes that a device leaves to the host, by the text of their graphs.
using HostPrograms = std::map<std::string, Executable, std::less<>>;

struct Executable::State {
  /// `inner`: of a region, where any operand may turn out to be a weight, and nothing is prepared. `on_host`: what is not compiled again.
  State(std::shared_ptr<Session::State> session, const Graph& graph, Program lowered, std::shared_ptr<DeviceKernels> kernels = nullptr,
        const HostPrograms& on_host = {}, bool inner = false);

  std::shared_ptr<Session::State> session;
  Graph source;  // as the user gave it
  Program program;
  std::unique_ptr<TakenGraph> taken;       // of a device that takes whole graphs: what computes it in place of the program
  std::vector<PrecisionChoice> precision;  // of its products
  std::optional<CompiledIndexChecks> index_checks;
  ProgramSlots memory;
  std::vector<std::size_t> state_of_output;         // by output: the state of that name; as many as there are inputs: none
  SizeTable sizes;                                  // of its steps
  std::unique_ptr<HostProgram> host_program;        // of a device without memory of its own
  std::vector<LaunchStep> steps;                    // of one with it
  std::shared_ptr<DeviceKernels> kernels;           // the same, for all regions
  std::map<const Launch*, Executable> on_the_host;  // the same: nodes that no kernel computes
  std::map<ValueId, bool> of_host;                  // the same; see values_of_host
  std::map<std::int32_t, Array> constants;          // the same, by node
  std::vector<DeviceList> lists;                    // the same
  std::vector<bool> is_prepared;                    // by launch
  PreparedPart prepared;
  MemoryPlan plan;  // at the bounds of the symbols
  std::unique_ptr<ArenaPool> arenas;
  mutable std::mutex mutex;     // of the parameters, the states, and what a region packed
  std::vector<bool> is_param;   // by input
  std::vector<bool> runs_read;  // by input: steps of each run read it, or it is an output
  bool has_states = false;
  Turns turn;  // of runs of a graph with states
  std::shared_ptr<BoundParameters> parameters;
  std::vector<Array> states;         // by input
  std::vector<bool> owns_state;      // by input: whether the state's memory was made by a run, and may be changed where nobody shares it
  std::vector<Array> states_before;  // by input: those whose memory the next run may write, where nobody shares it; others have no size
  std::vector<bool> updates_state;   // by input: a launch replaces windows of it where it lies
  std::vector<bool> has_value;       // by input: a state that was set, or that a run replaced
  struct Packed {
    Array from;
    std::shared_ptr<const Array> value;
  };
  std::map<std::size_t, Packed> packed;                    // of a region, by step: what its operands turned out to be
  std::map<const Graph*, std::unique_ptr<State>> regions;  // of its control flow ops

  /// Binds arrays to parameters and states, by input. What was packed or prepared of others stays, but not of the same bytes, nor in
  /// regions of the same owner: their numbers may be others now.
  void rebind(std::vector<std::pair<std::size_t, Array>> arrays);
  /// Memory for what a run makes of a state: that of `current`, its value, where the run may write over it and nobody else holds it.
  /// `current`: null for a run that keeps nothing.
  Array next_state(std::size_t input, const Array* current, DType dtype, std::vector<std::int64_t> shape);
  /// Makes what a run made of a state its value.
  void keep_state(std::size_t input, const Array& value);
  int slot_of(ValueId value) const;
  /// The plan of a run's arena. The host's is that at the bounds, as it gives memory where it is touched.
  std::shared_ptr<const MemoryPlan> plan_at(const Bindings& bindings);
  std::size_t input_index(std::string_view name) const;

 private:
  /// Fills `steps`, `on_the_host`, `constants` and `lists`.
  void prepare_device(const HostPrograms& on_host);
  /// Fills `prepared`.
  void find_prepared();
  void add_prepared(std::size_t step);
  std::vector<std::pair<Bindings, std::shared_ptr<const MemoryPlan>>> plans_;  // the last few
  std::set<std::size_t> inputs_of(const Slot& slot) const;
  /// In regions: what was packed of memory that these own.
  void forget_packed(const std::set<const void*>& owners);
};

/// Throws Error for a graph that no run could compute: without outputs, or with sizes that do not follow from those of its inputs.
void check_runnable(const Graph& graph);

/// A graph as launches whose kernels are not compiled yet, and what became of the precision of its products.
struct LoweredGraph {
  Program program;
  std::vector<PrecisionChoice> precision;
};
LoweredGraph lower_graph(const Graph& graph, const SessionOptions& options, const TargetDevice& target);
/// The same for a device. Throws Error also where it needs the host, and the options forbid that.
LoweredGraph lower_for(const Graph& graph, const SessionOptions& options, const Device& device, const TargetDevice& target);

/// Gives the kernels of a program their code: in their functions, or as what a device has loaded. `given`: see HostCode::load.
std::shared_ptr<DeviceKernels> load_kernels(Session::State& session, Program& program, const KernelObjects& given = {});

/// See LaunchReport.
std::string arithmetic_of(const Graph& graph, const Launch& launch);

/// What each launch costs at these sizes; not timed.
std::vector<LaunchReport> launch_costs(const Executable::State& state, const Bindings& bindings);

}  // namespace rlx
