#include "rlx/session.h"

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
      threads(options.threads > 0 ? options.threads : granted_cpus()),
      code(device.backend().host_code(target, options, threads)) {
  if (!storage.on_host()) host.emplace(Device::cpu(), SessionOptions{.threads = options.threads, .cache_folder = options.cache_folder});
}

Session::Session(Device device, SessionOptions options) : state_(std::make_shared<State>(device, std::move(options))) {}

const Device& Session::device() const {
  const Session* const chosen = state_->chosen_already();
  return chosen ? chosen->device() : state_->device;
}

std::vector<DeviceEstimate> Session::estimates() const {
  return state_->chosen_already() ? state_->estimates : std::vector<DeviceEstimate>();
}

int Session::threads() const { return state_->threads; }
Precision Session::precision() const { return state_->options.precision; }
bool Session::rounds_activations() const { return state_->options.round_activations; }

CompileCounters Session::counters() const {
  if (const Session* const chosen = state_->chosen_already()) return chosen->counters();
  if (state_->code) return state_->code->counters();
  const std::scoped_lock lock(state_->counting);
  return state_->on_device;
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
