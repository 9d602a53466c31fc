#pragma once
#include <functional>
#include <span>

#include "backends/cpu/machine/cpu_features.h"
#include "backends/host_code.h"
#include "lowering/program_file/program_parts.h"

namespace rlx::cpu {

class TunedChoices;
struct Step;

/// Parts of memory that will be read soon.
using WeightsAhead = std::vector<std::span<const std::byte>>;

/// What the step of a launch is made from.
struct Preparation {
  const Program& program;
  SizeTable& sizes;                            // of all steps
  const std::function<int(ValueId)>& slot_of;  // numbers the memory of each stored value
  CpuLevel level;
  TunedChoices* tuned;  // of products; null: all are computed as usual
};

/// Code written by hand: what a launch runs that is no generated kernel.
struct Work : Claimed {
  virtual void prepare(Step& step, const Preparation& given) const = 0;
  /// How many steps from the first on, which is its own, run as one loop.
  virtual std::size_t joined(std::span<const Step> /*steps*/) const { return 1; }
  /// Runs such steps, or the first alone.
  virtual void run(std::span<const Step> steps, const RunState& run) const = 0;
  /// Adds which parts of its packed weights the step is about to read. False: all.
  virtual bool add_weights_ahead(const Step& /*step*/, const RunState& /*run*/, WeightsAhead& /*ahead*/) const { return false; }
};

/// That which computes a `T`.
template <class T>
struct WorkWith : Work {
  explicit WorkWith(T given) : what(std::move(given)) {}
  T what;
};

/// The same for whoever makes it: `prepare_step` and `run_step` (or `run_steps`) are functions beside `T`; what else it has to say of
/// `Work` is its own. `list_parts` beside it says what of it is written to program files, and RegisterWork under which name.
template <class T>
struct WorkOf final : WorkWith<T> {
  inline static std::string_view name;
  std::string_view kind() const override { return name; }
  void write(ProgramWriter& way) const override { list_parts(way, what); }
  static std::shared_ptr<const Claimed> read(ProgramReader& way) {
    T what{};
    list_parts(way, what);
    return std::make_shared<const WorkOf>(std::move(what));
  }
  using WorkWith<T>::WorkWith, WorkWith<T>::what;
  void prepare(Step& step, const Preparation& given) const override { prepare_step(what, step, given); }
  std::size_t joined(std::span<const Step> steps) const override {
    if constexpr (requires { steps_in_one_loop(what, steps); }) return steps_in_one_loop(what, steps);
    else return 1;
  }
  void run(std::span<const Step> steps, const RunState& run) const override {
    if constexpr (requires { run_steps(what, steps, run); }) run_steps(what, steps, run);
    else run_step(what, steps.front(), run);
  }
  double flops(const Graph& graph, const Bindings& bindings) const override {
    if constexpr (requires { what.flops(graph, bindings); }) return what.flops(graph, bindings);
    else return 0;
  }
  double unread_bytes(const Graph& graph, const Bindings& bindings) const override {
    if constexpr (requires { what.unread_bytes(graph, bindings); }) return what.unread_bytes(graph, bindings);
    else return 0;
  }
  bool add_weights_ahead(const Step& step, const RunState& run, WeightsAhead& ahead) const override {
    if constexpr (requires { add_chosen_weights(what, step, run, ahead); }) return add_chosen_weights(what, step, run, ahead);
    else return false;
  }
};

template <class T>
struct RegisterWork : RegisterClaimed {
  explicit RegisterWork(std::string_view kind) : RegisterClaimed(kind, WorkOf<T>::read) { WorkOf<T>::name = kind; }
};

/// A launch of such code. `node`: what the claim computes; none where it writes a state.
template <class T>
Launch launch_with(std::string claim, ValueId node, std::vector<ValueId> reads, std::vector<ValueId> writes, T what) {
  Launch launch{Launch::Kind::claim, claim, std::move(reads), std::move(writes), {}, std::move(claim), node};
  launch.claimed = std::make_shared<const WorkOf<T>>(std::move(what));
  return launch;
}

/// What a launch computes where that is a `T`; else null.
template <class T>
const T* work_of(const Launch& launch) {
  const auto* const work = dynamic_cast<const WorkWith<T>*>(launch.claimed.get());
  return work ? &work->what : nullptr;
}

}  // namespace rlx::cpu
