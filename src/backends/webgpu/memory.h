#pragma once
#include <memory>
#include <mutex>
#include <vector>

#include "backends/backend.h"
#include "backends/webgpu/buffers.h"
#include "backends/webgpu/pass_clock.h"
#include "backends/webgpu/shaders.h"

namespace rlx::webgpu {

/// A device's memory, with the one queue in which it does everything in order. What is asked for is recorded, and submitted when the host
/// reads or writes, or when much is recorded.
class Memory : public DeviceMemory {
 public:
  /// `facts` must outlive it. Throws Error where the driver does not open the device.
  explicit Memory(const DeviceFacts& facts);
  ~Memory() override;

  std::shared_ptr<std::byte> allocate(std::int64_t bytes) override;
  std::int64_t largest_buffer() const override { return device_.facts.largest_buffer(); }
  void upload(std::byte* to, std::span<const std::byte> from) override;
  void download(std::span<std::byte> to, const std::byte* from) override;
  void copy(std::byte* to, const std::byte* from, std::int64_t bytes) override;
  void clear(std::byte* to, std::int64_t bytes) override;
  std::unique_ptr<DeviceKernels> load(std::span<const KernelText> texts, const std::filesystem::path& cache) override;
  void finish() override;
  /// By the device's own clock, from the first pass that begins to the last that ends; by the host's where there is none.
  double seconds(FunctionRef<void()> work) override;

  void launch(const LoadedKernel& kernel, std::span<std::byte* const> buffers, std::span<const std::int64_t> sizes, std::int64_t positions);

 private:
  CommandEncoder encoder();
  ComputePass pass();
  void end_pass();
  void submit();
  void read(BufferHandle from, std::uint64_t first, std::uint64_t bytes, FunctionRef<void(const std::byte*)> use);
  double noted_seconds();
  void record(const LoadedKernel& kernel, std::span<std::byte* const> buffers, std::span<const std::int64_t> sizes, std::int64_t positions);
  std::shared_ptr<std::byte> gather(const LoadedKernel& kernel, std::vector<std::byte*>& buffers, std::span<const std::int64_t> sizes);
  void record_copy(std::byte* to, const std::byte* from, std::int64_t bytes);
  std::size_t add_table(const LoadedKernel& kernel, const std::vector<BufferPlace>& places, std::span<const std::int64_t> sizes,
                        std::int64_t positions);
  void move_bytes(std::byte* to, const std::byte* from, std::int64_t bytes, bool zeros);

  OpenDevice device_;
  Buffers buffers_;
  Shaders shaders_;
  std::shared_ptr<const LoadedKernel> bytes_kernel_;
  std::mutex mutex_;  // of what is recorded
  CommandEncoder encoder_ = nullptr;
  ComputePass pass_ = nullptr;
  std::unique_ptr<PassClock> clock_;  // null: nothing is timed
  std::mutex timing_mutex_;
  BufferHandle tables_ = nullptr;    // of the sizes of all launches that are recorded
  std::vector<std::byte> recorded_;  // what they hold
};

}  // namespace rlx::webgpu
