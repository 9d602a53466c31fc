#include "backends/cpu/jit.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <map>
#include <mutex>
#include <system_error>
#include <thread>

#include "backends/cpu/compiler.h"
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

}  // namespace

struct Jit::State {
  CpuLevel level;
  ObjectCache cache;
  std::string flags;
  std::once_flag compiler_is_open;
  std::unique_ptr<Compiler> opened;  // see compiler()
  std::mutex mutex;                  // of what follows
  std::vector<LinkedKernel> linked;
  std::map<std::string, KernelFunction, std::less<>> loaded;
  JitCounters counters;

  State(const TargetDevice& target, std::filesystem::path folder)
      : level(level_of(target)), cache(std::move(folder)), flags(target.fingerprint) {}

  Compiler& compiler() {
    std::call_once(compiler_is_open, [this] { opened = open_compiler(level); });
    return *opened;
  }

  /// The object of one kernel: what is given, or from disk or from the compiler.
  std::string object_of(const KernelText& kernel, const KernelObjects& given) {
    if (const auto known = given.find(kernel.name); known != given.end()) {
      const std::scoped_lock lock(mutex);
      ++counters.from_disk;
      return {reinterpret_cast<const char*>(known->second.data()), known->second.size()};
    }
    const std::string key = flags + "\n" + kernel.text;
    std::string reason;
    if (auto found = cache.find(key, reason)) {
      const std::scoped_lock lock(mutex);
      ++counters.from_disk;
      return {reinterpret_cast<const char*>(found->data()), found->size()};
    }
    std::string object = compiler().compile(kernel);
    cache.store(key, object, reason);
    const std::scoped_lock lock(mutex);
    ++counters.compiled;
    if (counters.cache_error.empty()) counters.cache_error = reason;
    return object;
  }

  /// The caller holds the mutex.
  KernelFunction link(const std::string& object, const std::string& name) {
    try {
      return linked.emplace_back(std::as_bytes(std::span(object)), name).function();
    } catch (const Error&) {
      return compiler().link(object, name);
    }
  }
};

Jit::Jit(const TargetDevice& target, std::filesystem::path cache_folder)
    : state_(std::make_unique<State>(target, std::move(cache_folder))) {}
Jit::~Jit() = default;

JitCounters Jit::counters() const {
  const std::scoped_lock lock(state_->mutex);
  return state_->counters;
}

std::string Jit::object(const KernelText& text) { return state_->object_of(text, {}); }

std::vector<KernelFunction> Jit::load(std::span<const KernelText> texts, ThreadPool& pool, const KernelObjects& given) {
  std::map<std::string_view, const KernelText*> missing;
  {
    const std::scoped_lock lock(state_->mutex);
    for (const KernelText& text : texts)
      if (state_->loaded.count(text.name)) ++state_->counters.shared;
      else if (!missing.emplace(text.name, &text).second) ++state_->counters.shared;
  }
  std::vector<const KernelText*> work;
  for (const auto& [name, text] : missing) work.push_back(text);
  std::vector<std::string> objects(work.size());
  by_threads(pool.size(), work.size(), [&](std::size_t i) { objects[i] = state_->object_of(*work[i], given); });
  const std::scoped_lock lock(state_->mutex);
  for (std::size_t i = 0; i < work.size(); ++i)
    if (const std::string& name = work[i]->name; !state_->loaded.count(name))  // else another thread was faster
      state_->loaded[name] = state_->link(objects[i], name);
  std::vector<KernelFunction> functions;
  for (const KernelText& text : texts) functions.push_back(state_->loaded.find(text.name)->second);
  return functions;
}

}  // namespace rlx::cpu
