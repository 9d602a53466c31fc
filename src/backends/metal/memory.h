#pragma once
#include <map>
#include <mutex>

#include "backends/backend.h"
#include "backends/metal/kernels.h"

namespace rlx::metal {

/// Memory that a GPU shares with the host, and its queue. Addresses are those that kernels see: the host has others. Where the queue is
/// empty, the host itself writes and copies. What is let go is freed when the queue was waited for, as it may be in use before.
class Memory : public DeviceMemory {
 public:
  Memory(Gpu& gpu, std::string name) : gpu_(gpu), name_(std::move(name)) {}
  ~Memory() override;

  std::shared_ptr<std::byte> allocate(std::int64_t bytes) override;
  std::int64_t largest_buffer() const override { return gpu_.largest_buffer; }
  std::shared_ptr<std::byte> wrap(std::span<const std::byte> bytes, std::shared_ptr<const void> owner) override;
  void upload(std::byte* to, std::span<const std::byte> from) override;
  void download(std::span<std::byte> to, const std::byte* from) override;
  void copy(std::byte* to, const std::byte* from, std::int64_t bytes) override;
  void clear(std::byte* to, std::int64_t bytes) override;
  std::unique_ptr<DeviceKernels> load(std::span<const KernelText> texts, const std::filesystem::path& cache) override;
  void finish() override;

  void launch(const LoadedKernel& kernel, std::span<std::byte* const> buffers, std::span<const std::int64_t> sizes, std::int64_t positions);

 private:
  struct Taken {
    Shared shared;
    std::int64_t bytes;
  };
  struct Place {
    const Taken* taken;
    std::int64_t offset;
    std::byte* host() const { return taken->shared.host + offset; }
  };
  // The mutex is held in all of them.
  Shared shared_of(std::int64_t bytes);
  std::byte* add(const Shared& shared, std::int64_t bytes);
  void let_go(std::byte* address);
  Place find(const std::byte* address, std::int64_t bytes = 0) const;
  void drain();
  void wait();

  Gpu& gpu_;
  const std::string name_;
  std::mutex mutex_;
  std::map<std::uint64_t, Taken> taken_;  // by address
  std::vector<Taken> let_go_;
  std::int64_t taken_bytes_ = 0;  // with those let go
  bool is_busy_ = false;          // something was asked of the queue since it was waited for
  std::string failed_;            // what did since somebody was told of it
  KernelsByText<LoadedKernel> kernels_;
};

}  // namespace rlx::metal
