#pragma once
#include <set>

#include "runtime/executable.h"

namespace rlx {

/// One run of a program: the arrays of all inputs by position, the sizes, and the memory of every slot. Inputs must live as long.
class Run {
 public:
  /// `weights` tells for each input whether its bytes stay as they are from run to run; those arrays own their bytes.
  /// `targets`: memory for each output, or null; empty: for none.
  Run(Executable::State& state, std::vector<Array> inputs, std::vector<bool> weights, const Bindings& bindings,
      const std::vector<const Target*>& targets = {});
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  void execute();
  /// The shortest time of each launch in so many runs, in seconds.
  std::vector<double> time(int repeats);
  /// The arrays of all outputs, in order. Call it once, after `execute`.
  std::vector<Array> results();

 private:
  void make_outputs(const std::vector<const Target*>& targets);
  void place_slots();
  std::vector<Array> run_region(const Region& region, std::span<const Array> operands);
  std::shared_ptr<const void> packed(const cpu::Step& step, const cpu::PackWeights& pack);

  Executable::State& state_;
  std::unique_ptr<Arena, std::function<void(Arena*)>> arena_;
  std::vector<Array> inputs_, outputs_;
  std::vector<std::byte*> output_bytes_;
  std::vector<bool> weights_, direct_;
  std::set<const void*> weight_owners_;
  cpu::RunState run_;
};

}  // namespace rlx
