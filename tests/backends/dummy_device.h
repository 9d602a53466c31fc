#pragma once
#include <atomic>

#include "backends/backend.h"
#include "backends/cpu/backend.h"
#include "lowering/kernels_only/kernel_claims.h"

namespace rlx::test {

/// The CPU as a device with memory of its own: the addresses that it gives are none of the process, so that who follows one is stopped.
class DummyMemory final : public DeviceMemory {
 public:
  explicit DummyMemory(const TargetDevice& target) : jit_(cpu::backend().host_code(target, {.cache_folder = ""}, 2)) {}

  std::shared_ptr<std::byte> allocate(std::int64_t bytes) override {
    constexpr std::byte unset{0xa5};
    auto memory = std::make_shared<std::vector<std::byte>>(static_cast<std::size_t>(bytes) + 64, unset);
    std::byte* const begin = memory->data() + (64 - reinterpret_cast<std::uintptr_t>(memory->data()) % 64);
    most_taken = std::max<std::int64_t>(most_taken, taken += bytes);
    return {moved(begin, away), [this, memory = std::move(memory), bytes](std::byte*) { taken -= bytes; }};
  }
  std::optional<Room> room() const override { return all > 0 ? std::optional(Room{all - taken, all}) : std::nullopt; }
  void upload(std::byte* to, std::span<const std::byte> from) override {
    uploaded += std::ssize(from);
    std::memcpy(real(to), from.data(), from.size());
  }
  void download(std::span<std::byte> to, const std::byte* from) override {
    downloaded += std::ssize(to);
    std::memcpy(to.data(), real(const_cast<std::byte*>(from)), to.size());
  }
  void copy(std::byte* to, const std::byte* from, std::int64_t bytes) override {
    std::memcpy(real(to), real(const_cast<std::byte*>(from)), static_cast<std::size_t>(bytes));
  }
  void clear(std::byte* to, std::int64_t bytes) override { std::memset(real(to), 0, static_cast<std::size_t>(bytes)); }
  std::unique_ptr<DeviceKernels> load(std::span<const KernelText> texts, const std::filesystem::path& /*cache*/) override {
    return std::make_unique<Kernels>(jit_->load(texts, {}));
  }
  void finish() override {}

  std::atomic<std::int64_t> uploaded = 0, downloaded = 0;  // bytes that crossed
  std::atomic<std::int64_t> taken = 0, most_taken = 0;     // of what was allocated
  std::int64_t all = 0;                                    // bytes that it says it has; 0: it does not say

 private:
  static constexpr std::int64_t away = std::int64_t{1} << 60;  // no program has memory there
  static std::byte* moved(std::byte* address, std::int64_t by) {
    return reinterpret_cast<std::byte*>(reinterpret_cast<std::intptr_t>(address) + by);
  }
  static std::byte* real(std::byte* address) { return moved(address, -away); }

  struct Kernels final : DeviceKernels {
    explicit Kernels(std::vector<KernelFunction> loaded) : functions(std::move(loaded)) {}
    void launch(std::size_t kernel, std::span<std::byte* const> buffers, std::span<const std::int64_t> sizes,
                std::int64_t positions) override {
      std::vector<void*> places;
      for (std::byte* buffer : buffers) places.push_back(real(buffer));
      functions[kernel](places.data(), sizes.data(), 0, positions);
    }
    std::vector<KernelFunction> functions;
  };

  std::unique_ptr<HostCode> jit_;
};

struct DummyBackend final : Backend {
  std::string name() const override { return "dummy"; }
  std::string description() const override { return "the CPU with memory of its own"; }
  TargetDevice target(const SessionOptions& /*options*/) const override {
    TargetDevice cpu = cpu::target_of();
    cpu.name = "dummy", cpu.claims = kernel_claims(), cpu.expands = true, cpu.complete = false;
    return cpu;
  }
  DummyMemory* memory() const override { return &memory_; }

 private:
  mutable DummyMemory memory_{cpu::target_of()};
};

inline const DummyBackend& dummy_backend() {
  static const DummyBackend backend;
  return backend;
}
inline Device dummy_device() { return Device(dummy_backend()); }

}  // namespace rlx::test
