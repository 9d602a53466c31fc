#pragma once
#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <string>

#include "backends/cpu/gemm/blocking.h"
#include "backends/cpu/machine/cpu_features.h"
#include "base/function_ref.h"
#include "lowering/object_cache.h"
#include "rlx/session.h"

namespace rlx::cpu {

/// What the time of a product depends on beside the machine: the size of its elements, its sizes, and how its operands and result lie.
using ProductKey = std::array<std::int64_t, 14>;

/// Choices about products that were made by timing them, kept for the process, and on disk for this machine: the key of a file names the
/// version, the CPU with its caches, the level, the threads and the product. A file that is cut short or foreign counts as absent.
/// Thread-safe.
class TunedChoices {
 public:
  /// `folder`: empty: nothing is kept on disk.
  TunedChoices(const std::filesystem::path& folder, std::string machine);

  /// The choice for a product: the one that is known if `is_possible` holds for it, else the one that `measure` gives.
  ProductChoice get(const ProductKey& key, FunctionRef<bool(const ProductChoice&)> is_possible, FunctionRef<ProductChoice()> measure);

  CompileCounters counters() const;

 private:
  ProductChoice find_or_measure(const ProductKey& key, FunctionRef<bool(const ProductChoice&)> is_possible,
                                FunctionRef<ProductChoice()> measure);

  ObjectCache disk_;
  std::string machine_;
  mutable std::mutex mutex_;  // of what follows
  std::map<ProductKey, ProductChoice> known_;
  CompileCounters counters_;
  std::mutex measuring_;  // one at a time, so that none disturbs another
};

/// This machine, version and number of threads, as keys name them.
std::string tuning_machine(CpuLevel level, int threads);

}  // namespace rlx::cpu
