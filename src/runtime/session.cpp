#include "rlx/session.h"

#include "backends/cpu/backend.h"
#include "backends/cpu/machine/denormals.h"
#include "base/cpu_count.h"
#include "base/names.h"
#include "runtime/executable.h"

namespace rlx {

namespace {

/// The device. Throws Error for options that no session on it takes.
Device checked(const Device& device, const SessionOptions& options) {
  if (options.threads < 0 || options.threads > ThreadPool::max_threads)
    fail("session: {} threads (allowed: 1..{}, or 0 for as many as the process may use)", options.threads, ThreadPool::max_threads);
  if (options.calibration && options.precision != Precision::int8)
    fail("session: a calibration is of int8, but the precision is {}", name(options.precision));
  if (!options.graph_mode.empty() && !device.backend().takes_graphs())
    fail("session: graph_mode '{}' is of devices that take whole graphs, as MLX does, and the device is {}", options.graph_mode,
         device.name());
  return device;
}

}  // namespace

Session::State::State(const Device& on, SessionOptions given)
    : device(checked(on, given)),
      options(std::move(given)),
      target(device.backend().target(options)),
      storage(device.backend(), options.host),
      pool(options.threads > 0 ? options.threads : granted_cpus(), cpu::flush_denormals),
      jit(target, options.cache_folder.value_or(default_cache_folder())) {
  if (!storage.on_host()) host.emplace(Device::cpu(), SessionOptions{.threads = options.threads, .cache_folder = options.cache_folder});
  if (options.tune && storage.on_host())
    tuned = std::make_unique<cpu::TunedChoices>(options.cache_folder.value_or(default_cache_folder()),
                                                cpu::tuning_machine(cpu::level_of(target), pool.size()));
}

std::string Session::State::cpu_level() const {
  return storage.on_host() ? std::string(cpu::to_string(cpu::level_of(target))) : std::string();
}

Session::Session(Device device, SessionOptions options) : state_(std::make_shared<State>(device, std::move(options))) {}

const Device& Session::device() const {
  const Session* const chosen = state_->chosen_already();
  return chosen ? chosen->device() : state_->device;
}

std::vector<DeviceEstimate> Session::estimates() const {
  return state_->chosen_already() ? state_->estimates : std::vector<DeviceEstimate>();
}

int Session::threads() const { return state_->pool.size(); }
Precision Session::precision() const { return state_->options.precision; }
bool Session::rounds_activations() const { return state_->options.round_activations; }

CompileCounters Session::counters() const {
  if (const Session* const chosen = state_->chosen_already()) return chosen->counters();
  const cpu::JitCounters c = state_->jit.counters();
  const auto tuned = state_->tuned ? state_->tuned->counters() : cpu::TunedChoices::Counters{};
  if (!state_->storage.on_host()) {
    const std::scoped_lock lock(state_->counting);
    return state_->on_device;
  }
  return {c.compiled, c.from_disk, c.shared, tuned.timed, tuned.from_disk, c.cache_error.empty() ? tuned.error : c.cache_error};
}

const Array& Outputs::at(std::string_view name) const& {
  std::vector<std::string_view> names;
  for (const auto& [known, array] : items_) {
    if (known == name) return array;
    names.push_back(known);
  }
  fail("output '{}' is unknown{}", name, near_hint(name, names));
}

}  // namespace rlx
