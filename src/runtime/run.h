#pragma once
#include <set>

#include "base/loop_record.h"
#include "runtime/executable.h"
#include "runtime/origin.h"

namespace rlx {

struct Scan;

/// One run of a program: the arrays of all inputs by position, the sizes, and the memory of every slot. The arrays must live as long.
class Run {
 public:
  /// `weights` tells for each input whether its bytes stay as they are from run to run; those arrays own their bytes.
  /// `parameters`: those among these inputs; of a region, where nothing is prepared, null.
  /// `targets`: memory for each output, or null; empty: for none. `keeps`: the run makes the states of the next one.
  Run(Executable::State& state, std::vector<const Array*> inputs, std::vector<bool> weights, Bindings bindings,
      std::shared_ptr<BoundParameters> parameters, const std::vector<const Target*>& targets = {}, bool keeps = false);
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  void execute();
  /// Notes the shortest time of each launch in so many runs, and the scratch memory it took; not of those that are prepared.
  void time(int repeats, std::vector<LaunchReport>& reports);
  /// What each thread does when, in the fastest of so many runs.
  std::vector<TraceEvent> trace(int repeats);
  /// The arrays of all outputs, in order. Call it once, after `execute`.
  std::vector<Array> results();

 private:
  std::vector<TraceEvent> trace_launches(LoopRecord& record, LoopRecord::Clock::time_point start);
  void make_outputs(const std::vector<const Target*>& targets, bool keeps);
  const std::byte* in_arena(std::int64_t offset) const;
  void place_slots();
  void keep_owner(std::size_t slot, const Array& weights);
  void prepare();
  void run_missing();
  bool take_shared(Prepared& known, std::span<const std::size_t> values);
  void compute(Prepared& known, const PreparedLaunch& launch);
  void pack_of_region();
  void pack_weights(Prepared& known, const PreparedLaunch& launch, const Array& weights);
  std::byte*& memory_of(std::size_t prepared_value);
  void run_launch(std::size_t launch);
  double seconds_of(std::size_t launch);
  void run_on_device(const LaunchStep& step);
  void run_other(const LaunchStep& step);
  void execute_on_device();
  void launch_list(const DeviceList& list);
  void run_on_host(const LaunchStep& step);
  void run_control(const LaunchStep& step);
  std::vector<Array> operands_of(const LaunchStep& step) const;
  std::vector<std::byte*> result_places(const LaunchStep& step) const;
  void place_prepared();
  std::vector<Array> run_region(const Region& region, std::span<const Array> operands);
  void run_step(const Scan& op, std::int64_t n, std::int64_t length, std::span<const Array> inputs, std::span<std::byte* const> other,
                std::span<std::byte* const> results);
  bool run_loop(const Node& node, std::span<const Array> operands, std::span<std::byte* const> results);
  std::vector<bool> weights_among(std::span<const Array> operands) const;
  void write_output(std::size_t output, std::byte* bytes);
  void copy_outputs();
  Origins& origins();
  const Array& weights_in(const Slot& slot) const;

  Executable::State& state_;
  Storage& storage_;
  std::unique_ptr<Arena, std::function<void(Arena*)>> arena_;
  std::vector<std::shared_ptr<std::byte>> device_arena_;  // by piece
  std::shared_ptr<const MemoryPlan> plan_;
  std::shared_ptr<BoundParameters> parameters_;
  std::shared_ptr<const Prepared> prepared_;  // of a region: what is packed for it
  std::vector<const Array*> inputs_;
  std::vector<Array> outputs_;
  std::vector<std::byte*> output_bytes_;
  std::vector<bool> weights_, direct_;
  std::vector<bool> stays_in_loop_;      // by input; empty: it is no step of a loop
  std::set<const void*> weight_owners_;  // what regions know their weights by; of none where there are no regions
  std::optional<Origins> origins_;       // made where they are asked for
  RunState run_;
  std::vector<std::shared_ptr<const void>> owners_;  // by slot: of bytes that stay as they are from run to run
  std::map<ValueId, Array> on_host_;                 // what the host computed for nodes of its own; see values_of_host
};

}  // namespace rlx
