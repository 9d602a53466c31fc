#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backends/cpu/backend.h"
#include "backends/cpu/linked_kernel.h"
#include "base/thread_pool.h"
#include "emit/emit.h"

namespace rlx::cpu {

/// What a Jit has done so far.
struct JitCounters {
  std::int64_t compiled = 0;   // kernels that LLVM compiled
  std::int64_t from_disk = 0;  // kernels whose object was in the cache folder, or in the file of their program
  std::int64_t shared = 0;     // kernels that were loaded already
  std::string cache_error;     // why an object could not be kept on disk; empty: no such trouble
};

/// Machine code by the names of kernels.
using KernelObjects = std::map<std::string, std::span<const std::byte>, std::less<>>;

/// Compiles kernel texts and keeps them loaded; LLVM is needed for what is not in the cache only. Thread-safe.
class Jit {
 public:
  /// An empty folder: no disk cache.
  Jit(const TargetDevice& target, std::filesystem::path cache_folder);
  ~Jit();
  Jit(const Jit&) = delete;
  Jit& operator=(const Jit&) = delete;

  /// One function for each text. Texts that are not loaded yet come from the disk cache or are compiled, by as many threads as `pool` has;
  /// its own stay free for runs.
  /// A cache that cannot be read or written is done without; the counters say why.
  /// `given`: what needs neither.
  std::vector<KernelFunction> load(std::span<const KernelText> texts, ThreadPool& pool, const KernelObjects& given = {});
  /// The machine code of a text, for a file: from the disk cache, or compiled.
  std::string object(const KernelText& text);
  JitCounters counters() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace rlx::cpu
