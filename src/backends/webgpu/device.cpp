#include "backends/webgpu/device.h"

#include <algorithm>
#include <chrono>
#include <thread>

namespace rlx::webgpu {
namespace {

/// What a callback was given.
template <class Handle>
struct Given {
  Handle handle = nullptr;
  std::string message;
  bool done = false;

  static void take(std::uint32_t status, Handle handle, Text message, void* into, void* /*unused*/) {
    auto& given = *static_cast<Given*>(into);
    if (status == success) given.handle = handle;
    else given.message = message.string();
    given.done = true;
  }
  Callback<decltype(&take)> callback() { return {.function = take, .first = this}; }
};

/// Callbacks come while the instance looks for them.
void wait_for(const Driver& driver, Instance instance, const bool& done) {
  while (!done) {
    driver.InstanceProcessEvents(instance);
    if (!done) std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
}

std::vector<AdapterHandle> adapters_of(const Driver& driver, Instance instance, std::string& missing) {
  if (driver.InstanceEnumerateAdapters) {
    const EnumerateOptions options{nullptr, own_backends};
    std::vector<AdapterHandle> adapters(driver.InstanceEnumerateAdapters(instance, &options, nullptr));
    if (!adapters.empty()) driver.InstanceEnumerateAdapters(instance, &options, adapters.data());
    return adapters;
  }
  Given<AdapterHandle> given;
  const AdapterOptions options{};
  driver.InstanceRequestAdapter(instance, &options, given.callback());
  wait_for(driver, instance, given.done);
  if (given.handle) return {given.handle};
  missing = given.message;
  return {};
}

/// Mesa's lavapipe ends all loops then (LP_MAX_TGSI_LOOP_ITERATIONS), without a word.
constexpr std::int64_t most_rounds_of_lavapipe = 65535;

DeviceFacts facts_of(const std::shared_ptr<const Driver>& driver, const std::shared_ptr<InstanceOf>& instance, AdapterHandle adapter) {
  DeviceFacts facts;
  facts.driver = driver;
  facts.instance = instance;
  facts.adapter = {adapter, [driver, instance](AdapterHandle held) { driver->AdapterRelease(held); }};
  AdapterInfo info{};
  driver->AdapterGetInfo(adapter, &info);
  facts.title = info.device.string();
  facts.version = info.description.string();
  facts.is_cpu = info.type == adapter_is_cpu;
  if (facts.title.starts_with("llvmpipe")) facts.most_rounds = most_rounds_of_lavapipe;
  driver->AdapterInfoFreeMembers(info);
  driver->AdapterGetLimits(adapter, &facts.limits);
  facts.limits.next = nullptr;
  return facts;
}

}  // namespace

/// Indices are i32, and sizes of buffers are whole words.
std::int64_t DeviceFacts::largest_buffer() const {
  constexpr std::uint64_t most = (1u << 31) - 256;
  return static_cast<std::int64_t>(std::min({limits.buffer_bytes, limits.storage_bytes, most}) / 4 * 4);
}

Limits standard_limits(Limits limits) {
  limits.storage_buffers = 8;
  limits.uniform_bytes = 64 << 10;
  limits.storage_bytes = 128 << 20;
  limits.buffer_bytes = 256 << 20;
  limits.uniform_alignment = limits.storage_alignment = 256;
  limits.lanes = 256;
  limits.shared_bytes = 16 << 10;
  limits.groups_of_dimension = 65535;
  return limits;
}

Devices find_devices(const std::vector<std::string>& files) {
  Devices devices;
  const auto driver = open_driver(files, devices.missing);
  if (!driver) return devices;
  const std::shared_ptr<InstanceOf> instance(driver->CreateInstance(nullptr), [driver](Instance made) {
    if (made) driver->InstanceRelease(made);
  });
  if (!instance) return devices.missing = "the library makes no instance", devices;
  for (const AdapterHandle adapter : adapters_of(*driver, instance.get(), devices.missing)) {
    devices.found.push_back(facts_of(driver, instance, adapter));
    devices.found.back().name = fmt::format("webgpu:{}", devices.found.size() - 1);
  }
  if (devices.found.empty() && devices.missing.empty())
    devices.missing = "the library finds no adapter (Debian: apt-get install mesa-vulkan-drivers, or the driver of the device's maker)";
  return devices;
}

OpenDevice::OpenDevice(const DeviceFacts& of) : facts(of) {
  Given<DeviceHandle> given;
  DeviceDescriptor descriptor;
  descriptor.limits = &facts.limits;
  has_clock = driver().AdapterHasFeature(facts.adapter.get(), feature_of_timestamps) != 0;
  if (has_clock) descriptor.features = 1, descriptor.feature = &feature_of_timestamps;
  descriptor.lost.function = [](const DeviceHandle*, std::uint32_t, Text message, void* self, void*) {
    static_cast<OpenDevice*>(self)->note("the device is lost: ", message);
  };
  descriptor.error.function = [](const DeviceHandle*, std::uint32_t, Text message, void* self, void*) {
    static_cast<OpenDevice*>(self)->note("", message);
  };
  descriptor.lost.first = descriptor.error.first = this;
  driver().AdapterRequestDevice(facts.adapter.get(), &descriptor, given.callback());
  wait_for(driver(), facts.instance.get(), given.done);
  if (!given.handle) fail("{} ({}): opening it: {}", facts.name, facts.title, given.message);
  handle = given.handle;
  queue = driver().DeviceGetQueue(handle);
}

OpenDevice::~OpenDevice() {
  driver().QueueRelease(queue);
  driver().DeviceDestroy(handle);
  driver().DeviceRelease(handle);
}

void OpenDevice::wait(const bool& done) const {
  if (driver().DevicePoll) driver().DevicePoll(handle, 1, nullptr);
  wait_for(driver(), facts.instance.get(), done);
}

void OpenDevice::note(std::string_view kind, const Text& message) {
  const std::lock_guard lock(mutex_);
  if (report_.empty()) report_ = std::string(kind) + message.string();
}

std::string OpenDevice::take_report() {
  const std::lock_guard lock(mutex_);
  return std::exchange(report_, {});
}

}  // namespace rlx::webgpu
