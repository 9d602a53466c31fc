#pragma once
#include <mutex>
#include <span>
#include <unordered_map>

#include "backends/cpu/execution/tuned_choices.h"
#include "backends/cpu/execution/work.h"
#include "backends/cpu/gemm/gemm.h"
#include "ir/reference.h"
#include "lowering/kernel_step.h"

namespace rlx::cpu {

/// What a launch needs at run time, found once for each program.
struct Step {
  const Launch* launch = nullptr;
  const Work* work = nullptr;          // claim: that of the launch
  std::vector<KernelStep> kernels;     // of the launch
  std::vector<int> operands, results;  // their slots; of a claim: as it likes
  int weights = -1;                    // claim: the slot of what was packed for it, which may have no memory; -1: none
  int experts = -1;                    // claim: the slot of what tells which parts of those are read; -1: all are
  std::size_t joined = 1;              // claim: how many steps from this one on run as one loop
  std::shared_ptr<const void> found;   // claim: what it needs beside that

  template <class T>
  const T& found_as() const {
    return *static_cast<const T*>(found.get());
  }
};

/// Builds the steps of a program, whose sizes come into the table; `slot_of` numbers the memory of each stored value.
std::vector<Step> make_steps(const Program& program, SizeTable& sizes, const std::function<int(ValueId)>& slot_of, CpuLevel level);
/// Of a launch that packs so many bytes. Throws Error for a program file that has other memory for them.
void prepare_packing(Step& step, const Preparation& given, std::int64_t bytes);
/// The slot of so many bytes that were packed for a claim. Throws Error for a program file in which the value is another one.
int slot_of_packed(const Preparation& given, ValueId value, std::int64_t bytes);

/// Everything that one run reads and writes.
struct RunState {
  const Program* program = nullptr;
  ThreadPool* pool = nullptr;
  CpuLevel level{};
  std::vector<std::byte*> memory;                    // by slot
  std::vector<std::shared_ptr<const void>> weights;  // by slot: the owner of bytes that stay as they are from run to run
  std::vector<std::int64_t> symbols;                 // by position
  std::vector<std::int64_t> sizes;                   // by position in the table of the program's sizes
  Bindings bindings;
  RunRegion run_region;
  /// Runs a loop whose operands and results lie there; false: it is not one that can be run so.
  std::function<bool(const Node& node, std::span<const Array> operands, std::span<std::byte* const> results)> run_loop;
  TunedChoices* tuned = nullptr;         // of products; null: all are computed as usual
  std::size_t* scratch_bytes = nullptr;  // where set: how much scratch memory the last step that takes some took
  std::string* blocks = nullptr;         // where set: what was chosen by time for the last step that is a product
};

/// The shape of a value in this run.
std::vector<std::int64_t> sizes_of(const Type& type, const RunState& run);

/// Of a step of the host: its operands where they lie, and where its results go.
std::vector<Array> operands_of(const Step& step, const RunState& run);
std::vector<std::byte*> result_places(const Step& step, const RunState& run);

/// Scratch memory of the calling thread for a step of `run`, kept from one to the next.
std::byte* workspace(const RunState& run, std::size_t bytes);

/// Runs one step.
void execute(const Step& step, const RunState& run);
/// Runs the first of a program's steps from some place on, with those behind it that are joined to it. Returns how many those are.
std::size_t execute_joined(std::span<const Step> steps, const RunState& run);

}  // namespace rlx::cpu
