#pragma once
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "lowering/kernel_step.h"
#include "lowering/target.h"
#include "rlx/session.h"

namespace rlx {

/// Everything that one run of a program on the host reads and writes.
struct RunState {
  const Program* program = nullptr;
  const TargetDevice* target = nullptr;
  ThreadPool* pool = nullptr;
  std::vector<std::byte*> memory;     // by slot
  std::vector<std::int64_t> symbols;  // by position
  std::vector<std::int64_t> sizes;    // by position in the table of the program's sizes
  Bindings bindings;
  bool inner = false;                                // of a region
  std::function<void(const LaunchStep&)> run_other;  // runs a launch of control or of the host
  LaunchReport* report = nullptr;                    // where set: takes what a launch says of its run
};

/// The launches of a program, ready to run. Runs may come from several threads at a time.
struct HostProgram {
  HostProgram() = default;
  HostProgram(const HostProgram&) = delete;
  HostProgram& operator=(const HostProgram&) = delete;
  virtual ~HostProgram() = default;

  /// All but what is prepared.
  virtual void run(const RunState& run) const = 0;
  virtual void run_launch(std::size_t launch, const RunState& run) const = 0;
};

inline void add(CompileCounters& to, const CompileCounters& more) {
  to.kernels_compiled += more.kernels_compiled, to.kernels_from_disk += more.kernels_from_disk, to.kernels_shared += more.kernels_shared;
  to.products_timed += more.products_timed, to.products_from_disk += more.products_from_disk;
  if (!more.cache_error.empty()) to.cache_error = more.cache_error;
}

/// Machine code by the names of kernels.
using KernelObjects = std::map<std::string, std::span<const std::byte>, std::less<>>;

/// What runs the programs of one session in the host's memory, and its threads. Thread-safe.
struct HostCode {
  HostCode(std::string_view its_level, int threads, void (*at_start)()) : level(its_level), pool(threads, at_start) {}
  HostCode(const HostCode&) = delete;
  HostCode& operator=(const HostCode&) = delete;
  virtual ~HostCode() = default;

  /// One function for each text. `given`: what need not be compiled.
  virtual std::vector<KernelFunction> load(std::span<const KernelText> texts, const KernelObjects& given) = 0;
  /// The machine code of a text, for a file.
  virtual std::string object(const KernelText& text) = 0;
  /// `program`, whose kernels are loaded, must live as long. Its sizes come into the table, `slot_of` numbers the memory of each stored
  /// value, `prepared` are the launches that are no part of a run. Throws Error for a program file that has other memory for what is
  /// packed.
  virtual std::unique_ptr<HostProgram> steps(const Program& program, SizeTable& sizes, const std::function<int(ValueId)>& slot_of,
                                             const std::vector<bool>& prepared) const = 0;
  virtual CompileCounters counters() const = 0;

  const std::string level;  // the word for its instruction sets; see SessionOptions::cpu_level
  ThreadPool pool;
};

}  // namespace rlx
