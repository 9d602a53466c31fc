#include "backends/cpu/jit.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <map>
#include <mutex>
#include <system_error>
#include <thread>

#include "backends/cpu/compiler.h"
#include "backends/cpu/execution/execute.h"
#include "backends/cpu/execution/tuned_choices.h"
#include "backends/cpu/linked_kernel.h"
#include "backends/cpu/machine/denormals.h"
#include "backends/cpu/machine/level_of.h"
#include "base/function_ref.h"
#include "base/interruption.h"
#include "lowering/object_cache.h"
#include "rlx/error.h"

namespace rlx::cpu {
namespace {

/// Calls `body` with each of 0..count - 1, one after the other as threads are done: times may differ widely. The first exception is thrown
/// again. Where the system starts no more threads, fewer do it all.
void by_threads(int most, std::size_t count, FunctionRef<void(std::size_t)> body) {
  std::atomic<std::size_t> next = 0;
  std::mutex mutex;
  std::exception_ptr failure;
  const auto work = [&] {
    try {
      for (std::size_t i = next++; i < count; i = next++) {
        check_interruption();  // by the thread that called
        body(i);
      }
    } catch (...) {
      next = count;
      const std::scoped_lock lock(mutex);
      if (!failure) failure = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> others;
    const auto start = [&] {
      try {
        return others.emplace_back(work), true;
      } catch (const std::system_error&) {
        return false;
      }
    };
    for (bool more = true; more && others.size() + 1 < std::min(static_cast<std::size_t>(most), count);) more = start();
    work();
  }
  if (failure) std::rethrow_exception(failure);
}

class Jit final : public HostCode {
 public:
  Jit(const TargetDevice& target, const std::filesystem::path& folder, bool tunes, int threads)
      : HostCode(to_string(level_of(target)), threads, flush_denormals),
        level_(level_of(target)),
        cache_(folder),
        flags_(target.fingerprint) {
    if (tunes) tuned_ = std::make_unique<TunedChoices>(folder, tuning_machine(level_, threads));
  }

  std::vector<KernelFunction> load(std::span<const KernelText> texts, const KernelObjects& given) override {
    std::map<std::string_view, const KernelText*> missing;
    {
      const std::scoped_lock lock(mutex_);
      for (const KernelText& text : texts)
        if (loaded_.count(text.name) || !missing.emplace(text.name, &text).second) ++counters_.kernels_shared;
    }
    std::vector<const KernelText*> work;
    for (const auto& [name, text] : missing) work.push_back(text);
    std::vector<std::string> objects(work.size());
    by_threads(pool.size(), work.size(), [&](std::size_t i) { objects[i] = object_of(*work[i], given); });
    const std::scoped_lock lock(mutex_);
    for (std::size_t i = 0; i < work.size(); ++i)
      if (const std::string& name = work[i]->name; !loaded_.count(name))  // else another thread was faster
        loaded_[name] = link(objects[i], name);
    std::vector<KernelFunction> functions;
    for (const KernelText& text : texts) functions.push_back(loaded_.find(text.name)->second);
    return functions;
  }

  std::string object(const KernelText& text) override { return object_of(text, {}); }

  std::unique_ptr<HostProgram> steps(const Program& program, SizeTable& sizes, const std::function<int(ValueId)>& slot_of,
                                     const std::vector<bool>& prepared) const override {
    return make_steps({program, sizes, slot_of, level_, tuned_.get()}, prepared);
  }

  CompileCounters counters() const override {
    const std::scoped_lock lock(mutex_);
    CompileCounters all = counters_;
    if (tuned_) add(all, tuned_->counters());
    return all;
  }

 private:
  Compiler& compiler() {
    std::call_once(compiler_is_open_, [this] { opened_ = open_compiler(level_); });
    return *opened_;
  }

  /// The object of one kernel: what is given, or from disk or from the compiler.
  std::string object_of(const KernelText& kernel, const KernelObjects& given) {
    if (const auto known = given.find(kernel.name); known != given.end()) {
      const std::scoped_lock lock(mutex_);
      ++counters_.kernels_from_disk;
      return {reinterpret_cast<const char*>(known->second.data()), known->second.size()};
    }
    const std::string key = flags_ + "\n" + kernel.text;
    std::string reason;
    if (auto found = cache_.find(key, reason)) {
      const std::scoped_lock lock(mutex_);
      ++counters_.kernels_from_disk;
      return {reinterpret_cast<const char*>(found->data()), found->size()};
    }
    std::string object = compiler().compile(kernel);
    cache_.store(key, object, reason);
    const std::scoped_lock lock(mutex_);
    ++counters_.kernels_compiled;
    if (counters_.cache_error.empty()) counters_.cache_error = reason;
    return object;
  }

  /// The caller holds the mutex.
  KernelFunction link(const std::string& object, const std::string& name) {
    try {
      return linked_.emplace_back(std::as_bytes(std::span(object)), name).function();
    } catch (const Error&) {
      return compiler().link(object, name);
    }
  }

  const CpuLevel level_;
  ObjectCache cache_;
  const std::string flags_;
  std::unique_ptr<TunedChoices> tuned_;  // null: not asked for
  std::once_flag compiler_is_open_;
  std::unique_ptr<Compiler> opened_;  // see compiler()
  mutable std::mutex mutex_;          // of what follows
  std::vector<LinkedKernel> linked_;
  std::map<std::string, KernelFunction, std::less<>> loaded_;
  CompileCounters counters_;
};

}  // namespace

std::unique_ptr<HostCode> open_jit(const TargetDevice& target, const SessionOptions& options, int threads) {
  return std::make_unique<Jit>(target, options.cache_folder.value_or(default_cache_folder()), options.tune, threads);
}

}  // namespace rlx::cpu
