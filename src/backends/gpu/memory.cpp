#include "backends/gpu/memory.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "backends/gpu/event.h"
#include "backends/gpu/launches.h"
#include "backends/gpu/staging.h"
#include "base/bytes_text.h"

namespace rlx::gpu {
namespace {

Context open_context(const DeviceFacts& device) {
  Context context = nullptr;
  check(device, device.driver->RetainContext(&context, device.id), "opening it");
  check(device, device.driver->SetCurrent(context), "opening it");
  return context;
}

Stream open_stream(const DeviceFacts& device) {
  constexpr unsigned apart = 1;  // from the stream that other libraries of the process share
  Stream stream = nullptr;
  check(device, device.driver->CreateStream(&stream, apart), "opening its stream");
  return stream;
}

/// What is let go is kept for what asks next.
void keep_memory(const DeviceFacts& device) {
  constexpr int release_threshold = 4;
  auto most = static_cast<std::uint64_t>(device.memory / 16);
  Pool pool = nullptr;
  check(device, device.driver->GetPool(&pool, device.id), "finding its memory");
  check(device, device.driver->SetPoolAttribute(pool, release_threshold, &most), "keeping its memory");
}

}  // namespace

Memory::Memory(const DeviceFacts& device)
    : device_(device), context_(open_context(device)), stream_(open_stream(device)), modules_(device, context_, stream_) {
  keep_memory(device);
}

Memory::~Memory() {
  driver().Synchronize(stream_);
  staging_.reset();
  driver().DestroyStream(stream_);
  driver().ReleaseContext(device_.id);
}

const Driver& Memory::driver() const {
  device_.driver->SetCurrent(context_);
  return *device_.driver;
}

std::shared_ptr<std::byte> Memory::allocate(std::int64_t bytes) {
  const Driver& calls = driver();
  const auto ask = [&](std::byte*& address) {
    return calls.Allocate(&address, static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1)), stream_);
  };
  std::byte* address = nullptr;
  if (bytes < 0 || bytes > device_.memory) refuse(bytes, ask(address));
  if (ask(address) != 0) {
    finish();  // what was let go is free then
    if (const Code code = ask(address); code != 0) refuse(bytes, code);
  }
  most_taken_ = std::max<std::int64_t>(most_taken_, taken_ += bytes);
  return {address, [this, bytes](std::byte* taken) {
            taken_ -= bytes;
            driver().Free(taken, stream_);
          }};
}

std::optional<DeviceMemory::Room> Memory::room() const {
  std::size_t free = 0, total = 0;
  if (driver().GetFreeMemory(&free, &total) != 0) return std::nullopt;
  const std::int64_t kept = most_taken_ - taken_;  // what was let go stays in the driver's pool, for the next that asks
  return Room{static_cast<std::int64_t>(free) + kept, static_cast<std::int64_t>(total)};
}

void Memory::refuse(std::int64_t bytes, Code code) const {
  std::size_t free = 0, total = 0;
  driver().GetFreeMemory(&free, &total);
  fail("{} ({}): no memory for {}: {} ({} of {} are taken)", device_.name, device_.title, bytes_text(bytes),
       device_.driver->code_name(code), bytes_text(static_cast<std::int64_t>(total - free)), bytes_text(device_.memory));
}

/// Drivers copy what lies in pageable memory before they return. What the caller has may be pinned, so a copy of it is given to them.
void Memory::upload(std::byte* to, std::span<const std::byte> from) {
  if (from.empty()) return;
  constexpr std::size_t little = 64 << 10;
  if (from.size() > little) return staging().upload(to, from);
  const std::vector<std::byte> mine(from.begin(), from.end());
  check(device_, driver().Upload(to, mine.data(), mine.size(), stream_), "writing {} bytes", mine.size());
}

Staging& Memory::staging() {
  const std::lock_guard lock(opening_);
  if (!staging_) staging_ = std::make_unique<Staging>(*this);
  return *staging_;
}

/// Launches fail long after they were asked for: in what waits for them.
void Memory::download(std::span<std::byte> to, const std::byte* from) {
  if (to.empty()) return;
  const Driver& calls = driver();
  check(device_, calls.Download(to.data(), from, to.size(), stream_), "reading {} bytes", to.size());
  check(device_, calls.Synchronize(stream_), "reading {} bytes", to.size());
}

void Memory::copy(std::byte* to, const std::byte* from, std::int64_t bytes) {
  if (bytes == 0) return;
  check(device_, driver().Copy(to, from, static_cast<std::size_t>(bytes), stream_), "copying {} bytes", bytes);
}

void Memory::clear(std::byte* to, std::int64_t bytes) {
  if (bytes == 0) return;
  check(device_, driver().Fill(to, 0, static_cast<std::size_t>(bytes), stream_), "clearing {} bytes", bytes);
}

std::intptr_t Memory::place() const { return device_.driver->vendor == Vendor::cuda ? std::bit_cast<std::intptr_t>(context_) : device_.id; }

void Memory::wait_for(const Memory& other) const {
  const Event done(other, Event::Time::left_out);
  done.record();
  check(device_, driver().WaitFor(stream_, done.handle(), 0), "waiting for {}", other.device_.name);
}

/// Both wait for each other: what lies there was written before, and its memory may be let go at once.
std::shared_ptr<std::byte> Memory::copy_from(DeviceMemory& other, const std::byte* from, std::int64_t bytes) {
  const auto* const peer = dynamic_cast<const Memory*>(&other);
  if (!peer || peer->device_.driver != device_.driver) return nullptr;
  std::shared_ptr<std::byte> here = allocate(bytes);
  if (bytes == 0) return here;
  wait_for(*peer);
  if (driver().CopyFromPeer(here.get(), place(), from, peer->place(), static_cast<std::size_t>(bytes), stream_) != 0) return nullptr;
  peer->wait_for(*this);
  return here;
}

double Memory::seconds(FunctionRef<void()> work) {
  const Event begin(*this, Event::Time::noted), end(*this, Event::Time::noted);
  begin.record();
  work();
  end.record();
  finish();
  float milliseconds = 0;
  check(device_, driver().ElapsedTime(&milliseconds, begin.handle(), end.handle()), "reading its clock");
  return milliseconds * 1e-3;
}

std::unique_ptr<DeviceKernels> Memory::load(std::span<const KernelText> texts, const std::filesystem::path& cache) {
  driver();
  CompileCounters counted;
  auto kernels = modules_.load(texts, cache, counted);
  return std::make_unique<LaunchedKernels>(*this, std::move(kernels), std::move(counted));
}

void Memory::finish() { check(device_, driver().Synchronize(stream_), "waiting for it"); }

void Memory::launch(const GridLaunch& made) {
  LaunchArguments arguments(device_, made);
  const Code code = driver().Launch(made.kernel->function, made.blocks, 1, 1, made.threads, 1, 1,
                                    static_cast<unsigned>(made.kernel->on_chip_bytes), stream_, arguments.pointers(), nullptr);
  check(device_, code, "launching kernel {} with {} blocks of {} threads", made.kernel->name, made.blocks, made.threads);
}

}  // namespace rlx::gpu
