#include "backends/metal/memory.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "backends/loaded_kernels.h"
#include "base/bytes_text.h"
#include "rlx/error.h"

namespace rlx::metal {
namespace {

constexpr std::int64_t threads_of_group = 256;
constexpr std::size_t most_words = 4096 / 8;  // what a queue takes beside buffers

/// The pages in which these bytes lie.
std::span<std::byte> pages_of(std::span<const std::byte> bytes) {
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE)), first = reinterpret_cast<std::uintptr_t>(bytes.data());
  const std::uintptr_t begin = first / page * page, end = (first + bytes.size() + page - 1) / page * page;
  return {reinterpret_cast<std::byte*>(begin), end - begin};
}

}  // namespace

Memory::~Memory() {
  gpu_.finish();
  for (const Taken& taken : let_go_) gpu_.let_go(taken.shared.handle);
}

/// What waits to be freed is, where else there would be too much.
Shared Memory::shared_of(std::int64_t bytes) {
  if (bytes < 0 || bytes > gpu_.largest_buffer) return {};
  if (bytes > gpu_.memory - taken_bytes_) wait();
  if (bytes > gpu_.memory - taken_bytes_) return {};
  Shared shared = gpu_.allocate(bytes);
  if (shared.handle) return shared;
  wait();
  return gpu_.allocate(bytes);
}

std::byte* Memory::add(const Shared& shared, std::int64_t bytes) {
  taken_.emplace(shared.device, Taken{shared, bytes});
  taken_bytes_ += bytes;
  return reinterpret_cast<std::byte*>(shared.device);
}

std::shared_ptr<std::byte> Memory::allocate(std::int64_t bytes) {
  const std::lock_guard lock(mutex_);
  const Shared shared = shared_of(std::max<std::int64_t>(bytes, bytes == 0));
  if (!shared.handle)
    fail("{} ({}): no memory for {} ({} of {} are taken, and the largest buffer has {})", name_, gpu_.title, bytes_text(bytes),
         bytes_text(taken_bytes_), bytes_text(gpu_.memory), bytes_text(gpu_.largest_buffer));
  return {add(shared, std::max<std::int64_t>(bytes, 1)), [this](std::byte* address) {
            const std::lock_guard again(mutex_);
            let_go(address);
            if (!is_busy_) drain();
          }};
}

/// Little is not worth a buffer of its own. Who lets go waits: the owner's memory may be gone then.
std::shared_ptr<std::byte> Memory::wrap(std::span<const std::byte> bytes, std::shared_ptr<const void> owner) {
  constexpr std::size_t least = 64 << 10;
  if (bytes.size() < least) return nullptr;
  const std::span<std::byte> pages = pages_of(bytes);
  const std::lock_guard lock(mutex_);
  const Shared shared = gpu_.wrap(pages);
  if (!shared.handle) return nullptr;
  std::byte* const address = add(shared, std::ssize(pages));
  return {address + (bytes.data() - pages.data()), [this, address, owner = std::move(owner)](std::byte*) {
            const std::lock_guard again(mutex_);
            let_go(address);
            drain();
          }};
}

void Memory::let_go(std::byte* address) {
  const auto taken = taken_.find(reinterpret_cast<std::uintptr_t>(address));
  let_go_.push_back(taken->second);
  taken_.erase(taken);
}

Memory::Place Memory::find(const std::byte* address, std::int64_t bytes) const {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  const auto after = taken_.upper_bound(at);
  if (after != taken_.begin()) {
    const Taken& taken = std::prev(after)->second;
    const auto offset = static_cast<std::int64_t>(at - taken.shared.device);
    if (offset <= taken.bytes && bytes <= taken.bytes - offset) return {&taken, offset};
  }
  fail_internal("{}: {} bytes at {:#x} are in none of its buffers", name_, bytes, at);
}

/// Keeps what failed for who can be told of it.
void Memory::drain() {
  if (std::exchange(is_busy_, false))
    if (std::string error = gpu_.finish(); !error.empty()) failed_ = std::move(error);
  for (const Taken& taken : std::exchange(let_go_, {})) {
    gpu_.let_go(taken.shared.handle);
    taken_bytes_ -= taken.bytes;
  }
}

/// Launches fail long after they were asked for: in what waits for them.
void Memory::wait() {
  drain();
  if (const std::string error = std::exchange(failed_, {}); !error.empty()) fail("{} ({}): waiting for it: {}", name_, gpu_.title, error);
}

void Memory::finish() {
  const std::lock_guard lock(mutex_);
  wait();
}

/// While the queue has work, little is copied aside, and for more the queue is waited for.
void Memory::upload(std::byte* to, std::span<const std::byte> from) {
  if (from.empty()) return;
  constexpr std::int64_t copied_at_once = 64 << 10;
  const std::lock_guard lock(mutex_);
  const Place place = find(to, std::ssize(from));
  const std::int64_t bytes = std::ssize(from);
  const bool is_later = is_busy_ && bytes <= copied_at_once && bytes % 4 == 0 && place.offset % 4 == 0;
  const Shared aside = is_later ? shared_of(bytes) : Shared{};
  if (!aside.handle) {
    wait();
    std::memcpy(place.host(), from.data(), from.size());
    return;
  }
  std::memcpy(aside.host, from.data(), from.size());
  gpu_.copy(place.taken->shared.handle, place.offset, aside.handle, 0, bytes);
  let_go(add(aside, bytes));
  is_busy_ = true;
}

void Memory::download(std::span<std::byte> to, const std::byte* from) {
  if (to.empty()) return;
  const std::lock_guard lock(mutex_);
  const Place place = find(from, std::ssize(to));
  wait();
  std::memcpy(to.data(), place.host(), to.size());
}

void Memory::copy(std::byte* to, const std::byte* from, std::int64_t bytes) {
  if (bytes == 0) return;
  const std::lock_guard lock(mutex_);
  const Place target = find(to, bytes), source = find(from, bytes);
  if (is_busy_ && (target.offset | source.offset | bytes) % 4 == 0)
    return gpu_.copy(target.taken->shared.handle, target.offset, source.taken->shared.handle, source.offset, bytes);
  wait();
  std::memcpy(target.host(), source.host(), static_cast<std::size_t>(bytes));
}

void Memory::clear(std::byte* to, std::int64_t bytes) {
  if (bytes == 0) return;
  const std::lock_guard lock(mutex_);
  const Place place = find(to, bytes);
  if (is_busy_ && (place.offset | bytes) % 4 == 0) return gpu_.clear(place.taken->shared.handle, place.offset, bytes);
  wait();
  std::memset(place.host(), 0, static_cast<std::size_t>(bytes));
}

std::unique_ptr<DeviceKernels> Memory::load(std::span<const KernelText> texts, const std::filesystem::path& cache) {
  CompileCounters counted;
  auto kernels = kernels_.load(texts, counted, [&](std::span<const KernelText* const> missing) {
    const std::lock_guard lock(mutex_);
    return make_kernels(gpu_, name_, missing, cache, counted);
  });
  return std::make_unique<LoadedKernels<Memory, LoadedKernel>>(*this, std::move(kernels), std::move(counted));
}

void Memory::launch(const LoadedKernel& kernel, std::span<std::byte* const> buffers, std::span<const std::int64_t> sizes,
                    std::int64_t positions) {
  if (buffers.size() != kernel.element_bytes.size())
    fail_internal("{}: kernel {} takes {} buffers, and gets {}", name_, kernel.name, kernel.element_bytes.size(), buffers.size());
  if (buffers.size() + sizes.size() >= most_words)
    fail("{} ({}): kernel {} has {} buffers and sizes (allowed: {})", name_, gpu_.title, kernel.name, buffers.size() + sizes.size(),
         most_words - 1);
  const std::int64_t groups = (positions + threads_of_group - 1) / threads_of_group;
  constexpr std::int64_t most_groups = std::numeric_limits<int>::max();
  if (groups > most_groups) fail("{} ({}): kernel {} has {} groups (allowed: {})", name_, gpu_.title, kernel.name, groups, most_groups);
  std::vector<std::uint64_t> words;
  std::vector<void*> memories;
  const std::lock_guard lock(mutex_);
  for (std::size_t b = 0; b < buffers.size(); ++b) {
    words.push_back(reinterpret_cast<std::uintptr_t>(buffers[b]));
    memories.push_back(find(buffers[b]).taken->shared.handle);
    if (words[b] % static_cast<std::uint64_t>(kernel.element_bytes[b]) != 0)
      fail_internal("{}: buffer {} of kernel {} begins inside of an element", name_, b, kernel.name);
  }
  for (const std::int64_t size : sizes) words.push_back(static_cast<std::uint64_t>(size));
  words.push_back(static_cast<std::uint64_t>(positions));
  gpu_.launch(kernel.handle, words, memories, static_cast<std::uint64_t>(groups), threads_of_group);
  is_busy_ = true;
}

}  // namespace rlx::metal
