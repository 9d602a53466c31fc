#pragma once
#include <atomic>
#include <memory>
#include <mutex>

#include "backends/backend.h"
#include "backends/gpu/modules.h"

namespace rlx::gpu {

struct GridLaunch;
class Staging;

/// A device's memory, with the one stream in which it does everything in order.
class Memory : public DeviceMemory {
 public:
  /// `device` must outlive it. Throws Error where the driver opens no context or stream.
  explicit Memory(const DeviceFacts& device);
  ~Memory() override;

  std::shared_ptr<std::byte> allocate(std::int64_t bytes) override;
  std::optional<Room> room() const override;
  void upload(std::byte* to, std::span<const std::byte> from) override;
  void download(std::span<std::byte> to, const std::byte* from) override;
  void copy(std::byte* to, const std::byte* from, std::int64_t bytes) override;
  void clear(std::byte* to, std::int64_t bytes) override;
  std::shared_ptr<std::byte> copy_from(DeviceMemory& other, const std::byte* from, std::int64_t bytes) override;
  std::unique_ptr<DeviceKernels> load(std::span<const KernelText> texts, const std::filesystem::path& cache) override;
  void finish() override;
  double seconds(FunctionRef<void()> work) override;

  void launch(const GridLaunch& made);

  const DeviceFacts& device() const { return device_; }
  Stream stream() const { return stream_; }
  /// The driver, for the calling thread.
  const Driver& driver() const;

 private:
  /// What is asked for from now on waits until `other` has done what it was asked for.
  void wait_for(const Memory& other) const;
  std::intptr_t place() const;
  Staging& staging();
  [[noreturn]] void refuse(std::int64_t bytes, Code code) const;

  const DeviceFacts& device_;
  Context context_;
  Stream stream_;
  std::atomic<std::int64_t> taken_ = 0, most_taken_ = 0;  // bytes
  Modules modules_;
  std::mutex opening_;
  std::unique_ptr<Staging> staging_;  // by who first needs it
};

}  // namespace rlx::gpu
