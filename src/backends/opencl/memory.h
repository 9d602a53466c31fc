#pragma once
#include <deque>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <vector>

#include "backends/backend.h"
#include "backends/opencl/buffers.h"
#include "backends/opencl/programs.h"

namespace rlx::opencl {

/// What a driver reports, from threads of its own, of work that was under way.
struct Reports {
  std::mutex mutex;
  std::string first;
};

/// A device's memory, with the one queue in which it does everything in order.
class Memory : public DeviceMemory {
 public:
  /// `device` must outlive it. Throws Error where the driver opens no context or queue.
  explicit Memory(const DeviceFacts& device);
  ~Memory() override;

  std::shared_ptr<std::byte> allocate(std::int64_t bytes) override;
  std::optional<Room> room() const override;
  std::int64_t largest_buffer() const override { return device_.largest_buffer; }
  std::shared_ptr<std::byte> wrap(std::span<const std::byte> bytes, std::shared_ptr<const void> owner) override;
  void upload(std::byte* to, std::span<const std::byte> from) override;
  void download(std::span<std::byte> to, const std::byte* from) override;
  void copy(std::byte* to, const std::byte* from, std::int64_t bytes) override;
  void clear(std::byte* to, std::int64_t bytes) override;
  std::unique_ptr<DeviceKernels> load(std::span<const KernelText> texts, const std::filesystem::path& cache) override;
  void finish() override;
  /// By the device's own clock, from the first kernel that begins to the last that ends; by the host's where there is none.
  double seconds(FunctionRef<void()> work) override;

  std::int64_t bytes_in_use() const { return buffers_.bytes_in_use(); }
  /// One by one: a command buffer (cl_khr_command_buffer) of PoCL 3.1 keeps arguments only by a kernel's handle for each launch, and its
  /// replay took 5.6 us a launch where this took 1.2.
  void launch(const LoadedKernel& kernel, std::span<std::byte* const> buffers, std::span<const std::int64_t> sizes, std::int64_t positions);

 private:
  /// Bytes of the host that a command has still to read.
  struct Staged {
    std::vector<std::byte> bytes;
    cl_event read;
  };
  /// Calls `work` with the queue, which stays the same for so long.
  cl_int enqueue(const auto& work) {
    const std::shared_lock lock(switching_);
    return work(queue_);
  }
  /// Puts the other queue, made with these properties if it is not there, in place of the one in use, when that is done.
  void switch_queues(cl_command_queue_properties properties);
  double noted_seconds(const std::vector<cl_event>& events) const;
  void refuse_after_reports();
  void upload_later(const BufferPlace& to, std::span<const std::byte> from);
  void let_staged_go(std::size_t most);
  void set_arguments(const LoadedKernel& kernel, std::span<std::byte* const> buffers, std::span<const std::int64_t> sizes,
                     std::int64_t positions);

  const DeviceFacts& device_;
  Reports reports_;
  cl_context context_;
  cl_command_queue queue_, other_queue_ = nullptr;
  Buffers buffers_;
  Programs programs_;
  std::mutex launch_mutex_;  // of the arguments of all kernels, and of what notes them
  std::shared_mutex switching_;
  std::mutex timing_mutex_;
  std::vector<cl_event>* noted_ = nullptr;  // null: nothing is timed
  std::mutex staged_mutex_;
  std::deque<Staged> staged_;
};

}  // namespace rlx::opencl
