#pragma once
#include <set>

#include "runtime/executable.h"

namespace rlx {

/// One run of a program: the arrays of all inputs by position, the sizes, and the memory of every slot. Inputs must live as long.
class Run {
 public:
  /// `weights` tells for each input whether its bytes stay as they are from run to run; those arrays own their bytes.
  /// `preparation`: of these inputs; of a region, where nothing is prepared, null.
  /// `targets`: memory for each output, or null; empty: for none.
  Run(Executable::State& state, std::vector<Array> inputs, std::vector<bool> weights, const Bindings& bindings,
      std::shared_ptr<Preparation> preparation, const std::vector<const Target*>& targets = {});
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  void execute();
  /// The shortest time of each launch in so many runs, in seconds; zero for those that are prepared.
  std::vector<double> time(int repeats);
  /// The arrays of all outputs, in order. Call it once, after `execute`.
  std::vector<Array> results();

 private:
  void make_outputs(const std::vector<const Target*>& targets);
  void place_slots();
  void prepare();
  void run_missing();
  void place_prepared(std::size_t value);
  std::vector<Array> run_region(const Region& region, std::span<const Array> operands);
  std::shared_ptr<const void> packed(const cpu::Step& step, const cpu::PackWeights& pack);
  const Array& weights_in(const Slot& slot) const;
  std::shared_ptr<const void> known_panels(const cpu::Step& step, const Slot& slot) const;
  void keep_panels(const cpu::Step& step, const Slot& slot, std::shared_ptr<const void> panels);

  Executable::State& state_;
  std::unique_ptr<Arena, std::function<void(Arena*)>> arena_;
  std::shared_ptr<Preparation> preparation_;
  std::vector<std::shared_ptr<const Array>> prepared_;  // null: this run reads no more than its panels
  std::vector<Array> inputs_, outputs_;
  std::vector<std::byte*> output_bytes_;
  std::vector<bool> weights_, direct_;
  std::set<const void*> weight_owners_;
  cpu::RunState run_;
};

}  // namespace rlx
