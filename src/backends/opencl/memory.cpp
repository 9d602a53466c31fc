#include "backends/opencl/memory.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "backends/loaded_kernels.h"

namespace rlx::opencl {
namespace {

void CL_CALLBACK note_report(const char* text, const void* /*details*/, std::size_t /*bytes*/, void* reports) {
  auto& noted = *static_cast<Reports*>(reports);
  const std::lock_guard lock(noted.mutex);
  if (noted.first.empty()) noted.first = text;
}

cl_context open_context(const DeviceFacts& device, Reports& reports) {
  cl_int code = CL_SUCCESS;
  const cl_context context = device.driver->CreateContext(nullptr, 1, &device.id, note_report, &reports, &code);
  check(device, code, "opening it");
  return context;
}

cl_command_queue open_queue(const DeviceFacts& device, cl_context context, cl_command_queue_properties properties) {
  cl_int code = CL_SUCCESS;
  const cl_command_queue queue = device.driver->CreateCommandQueue(context, device.id, properties, &code);
  check(device, code, "opening its queue");
  return queue;
}

/// Items of a group. On a CPU a group is a task of one thread, so that few positions make small groups; elsewhere it is a lane an item.
std::int64_t group_items(const DeviceFacts& device, const LoadedKernel& kernel, std::int64_t positions) {
  constexpr std::int64_t usual = 256, groups_a_unit = 8;
  const std::int64_t least = device.is_cpu ? 1 : 64;
  const auto share = static_cast<std::int64_t>(
      std::bit_floor(static_cast<std::uint64_t>(positions / (groups_a_unit * std::max<std::int64_t>(device.units, 1)))));
  return std::min({std::max(share, least), usual, kernel.largest_group, device.largest_group});
}

}  // namespace

Memory::Memory(const DeviceFacts& device)
    : device_(device),
      context_(open_context(device, reports_)),
      queue_(open_queue(device, context_, 0)),
      buffers_(device, context_),
      programs_(device, context_) {}

Memory::~Memory() {
  device_.driver->Finish(queue_);
  let_staged_go(0);
  buffers_.release_all();
  device_.driver->ReleaseCommandQueue(queue_);
  if (other_queue_) device_.driver->ReleaseCommandQueue(other_queue_);
  device_.driver->ReleaseContext(context_);
}

std::shared_ptr<std::byte> Memory::allocate(std::int64_t bytes) {
  return {buffers_.take(bytes), [this](std::byte* address) { buffers_.let_go(address); }};
}

std::optional<DeviceMemory::Room> Memory::room() const {
  if (device_.memory_is_hosts) return std::nullopt;
  return Room{device_.memory - buffers_.bytes_in_use(), device_.memory};
}

/// Little is not worth a buffer of its own. Who lets go waits: the owner's memory may be gone then.
std::shared_ptr<std::byte> Memory::wrap(std::span<const std::byte> bytes, std::shared_ptr<const void> owner) {
  constexpr std::size_t least = 64 << 10;
  std::byte* const address = device_.memory_is_hosts && bytes.size() >= least ? buffers_.wrap(bytes) : nullptr;
  if (!address) return nullptr;
  return {address, [this, owner = std::move(owner)](std::byte* wrapped) {
            enqueue(device_.driver->Finish);
            buffers_.let_go(wrapped);
          }};
}

void Memory::upload(std::byte* to, std::span<const std::byte> from) {
  if (from.empty()) return;
  constexpr std::size_t copied_at_once = 64 << 10;  // copying less takes no longer than waiting for the queue
  const BufferPlace place = buffers_.find(to, std::ssize(from));
  if (from.size() <= copied_at_once) return upload_later(place, from);
  const cl_int code = enqueue([&](cl_command_queue queue) {
    return device_.driver->EnqueueWriteBuffer(queue, place.memory, CL_TRUE, static_cast<std::size_t>(place.offset), from.size(),
                                              from.data(), 0, nullptr, nullptr);
  });
  check(device_, code, "writing {} bytes", from.size());
}

void Memory::upload_later(const BufferPlace& to, std::span<const std::byte> from) {
  constexpr std::size_t most_waiting = 64;
  const std::lock_guard lock(staged_mutex_);
  let_staged_go(most_waiting);
  Staged staged{{from.begin(), from.end()}, nullptr};
  const cl_int code = enqueue([&](cl_command_queue queue) {
    return device_.driver->EnqueueWriteBuffer(queue, to.memory, CL_FALSE, static_cast<std::size_t>(to.offset), from.size(),
                                              staged.bytes.data(), 0, nullptr, &staged.read);
  });
  check(device_, code, "writing {} bytes", from.size());
  staged_.push_back(std::move(staged));
}

/// Those that were read, and as many more as leave no more than `most`.
void Memory::let_staged_go(std::size_t most) {
  while (!staged_.empty()) {
    const cl_event read = staged_.front().read;
    cl_int state = CL_COMPLETE;
    device_.driver->GetEventInfo(read, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, nullptr);
    if (state > CL_COMPLETE && staged_.size() <= most) return;
    if (state > CL_COMPLETE) device_.driver->WaitForEvents(1, &read);
    device_.driver->ReleaseEvent(read);
    staged_.pop_front();
  }
}

void Memory::download(std::span<std::byte> to, const std::byte* from) {
  if (to.empty()) return;
  const BufferPlace place = buffers_.find(from, std::ssize(to));
  const cl_int code = enqueue([&](cl_command_queue queue) {
    return device_.driver->EnqueueReadBuffer(queue, place.memory, CL_TRUE, static_cast<std::size_t>(place.offset), to.size(), to.data(), 0,
                                             nullptr, nullptr);
  });
  check(device_, code, "reading {} bytes", to.size());
  refuse_after_reports();
}

/// Launches fail long after they were asked for; numbers of theirs are not given to anybody.
void Memory::refuse_after_reports() {
  const std::lock_guard lock(reports_.mutex);
  if (const std::string report = std::exchange(reports_.first, {}); !report.empty())
    fail("{} ({}): the driver reports: {}", device_.name, device_.title, report);
}

void Memory::copy(std::byte* to, const std::byte* from, std::int64_t bytes) {
  if (bytes == 0) return;
  const BufferPlace target = buffers_.find(to, bytes), source = buffers_.find(from, bytes);
  const cl_int code = enqueue([&](cl_command_queue queue) {
    return device_.driver->EnqueueCopyBuffer(queue, source.memory, target.memory, static_cast<std::size_t>(source.offset),
                                             static_cast<std::size_t>(target.offset), static_cast<std::size_t>(bytes), 0, nullptr, nullptr);
  });
  check(device_, code, "copying {} bytes", bytes);
}

/// By a pattern as wide as place and size allow.
void Memory::clear(std::byte* to, std::int64_t bytes) {
  if (bytes == 0) return;
  constexpr std::uint64_t widest = 128;
  constexpr std::byte zeros[widest]{};
  const BufferPlace place = buffers_.find(to, bytes);
  const auto offset = static_cast<std::uint64_t>(place.offset), size = static_cast<std::uint64_t>(bytes);
  const std::uint64_t width = std::uint64_t{1} << std::countr_zero(offset | size | widest);
  const cl_int code = enqueue([&](cl_command_queue queue) {
    return device_.driver->EnqueueFillBuffer(queue, place.memory, zeros, width, offset, size, 0, nullptr, nullptr);
  });
  check(device_, code, "clearing {} bytes", bytes);
}

std::unique_ptr<DeviceKernels> Memory::load(std::span<const KernelText> texts, const std::filesystem::path& cache) {
  CompileCounters counted;
  auto kernels = programs_.load(texts, cache, counted);
  return std::make_unique<LoadedKernels<Memory, LoadedKernel>>(*this, std::move(kernels), std::move(counted));
}

void Memory::finish() {
  check(device_, enqueue(device_.driver->Finish), "waiting for it");
  {
    const std::lock_guard lock(staged_mutex_);
    let_staged_go(0);
  }
  refuse_after_reports();
}

void Memory::launch(const LoadedKernel& kernel, std::span<std::byte* const> buffers, std::span<const std::int64_t> sizes,
                    std::int64_t positions) {
  const auto group = static_cast<std::size_t>(group_items(device_, kernel, positions));
  const std::size_t items = (static_cast<std::size_t>(positions) + group - 1) / group * group;  // whole groups: drivers take others badly
  const std::lock_guard lock(launch_mutex_);
  set_arguments(kernel, buffers, sizes, positions);
  cl_event event = nullptr;
  const cl_int code = enqueue([&](cl_command_queue queue) {
    return device_.driver->EnqueueNDRangeKernel(queue, kernel.handle, 1, nullptr, &items, &group, 0, nullptr, noted_ ? &event : nullptr);
  });
  check(device_, code, "launching kernel {} with {} items in groups of {}", kernel.name, items, group);
  if (event) noted_->push_back(event);
}

void Memory::switch_queues(cl_command_queue_properties properties) {
  const std::unique_lock lock(switching_);
  if (!other_queue_) other_queue_ = open_queue(device_, context_, properties);
  device_.driver->Finish(queue_);
  std::swap(queue_, other_queue_);
}

double Memory::noted_seconds(const std::vector<cl_event>& events) const {
  cl_ulong first = ~cl_ulong{0}, last = 0;
  for (const cl_event event : events) {
    cl_ulong begin = 0, end = 0;
    const auto ask = [&](cl_profiling_info what, cl_ulong& time) {
      check(device_, device_.driver->GetEventProfilingInfo(event, what, sizeof time, &time, nullptr), "reading its clock");
    };
    ask(CL_PROFILING_COMMAND_START, begin);
    ask(CL_PROFILING_COMMAND_END, end);
    first = std::min(first, begin), last = std::max(last, end);
  }
  return static_cast<double>(last - first) * 1e-9;
}

/// A queue whose events have times may be slower, so that it is another one.
double Memory::seconds(FunctionRef<void()> work) {
  const std::lock_guard timing(timing_mutex_);
  std::vector<cl_event> events;
  const auto note_in = [&](std::vector<cl_event>* noted) {
    switch_queues(CL_QUEUE_PROFILING_ENABLE);
    const std::lock_guard lock(launch_mutex_);
    noted_ = noted;
  };
  note_in(&events);
  const std::shared_ptr<void> end(nullptr, [&](void*) {
    note_in(nullptr);
    for (const cl_event event : events) device_.driver->ReleaseEvent(event);
  });
  const double host = DeviceMemory::seconds(work);
  return events.empty() ? host : noted_seconds(events);
}

void Memory::set_arguments(const LoadedKernel& kernel, std::span<std::byte* const> buffers, std::span<const std::int64_t> sizes,
                           std::int64_t positions) {
  if (buffers.size() != kernel.element_bytes.size() || 2 * buffers.size() + sizes.size() + 1 != kernel.arguments)
    fail_internal("{}: kernel {} takes {} buffers and {} arguments, and gets {} buffers and {} sizes", device_.name, kernel.name,
                  kernel.element_bytes.size(), kernel.arguments, buffers.size(), sizes.size());
  cl_uint at = 0;
  const auto set = [&](const void* value, std::size_t bytes) {
    check(device_, device_.driver->SetKernelArg(kernel.handle, at, bytes, value), "argument {} of kernel {}", at, kernel.name);
    ++at;
  };
  const auto set_number = [&](cl_long number) { set(&number, sizeof number); };
  for (std::size_t b = 0; b < buffers.size(); ++b) {
    const BufferPlace place = buffers_.find(buffers[b]);
    if (place.offset % kernel.element_bytes[b] != 0)
      fail_internal("{}: buffer {} of kernel {} begins inside of an element", device_.name, b, kernel.name);
    set(static_cast<const void*>(&place.memory), sizeof(cl_mem));
    set_number(place.offset / kernel.element_bytes[b]);
  }
  for (const std::int64_t size : sizes) set_number(size);
  set_number(positions);
}

}  // namespace rlx::opencl
