#pragma once
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "backends/backend.h"
#include "backends/gpu/box_maps.h"
#include "backends/gpu/modules.h"

namespace rlx::gpu {

class Memory;

/// A launch as a driver takes it.
struct GridLaunch {
  const LoadedKernel* kernel = nullptr;
  unsigned blocks = 0, threads = 0;
  std::vector<std::uint64_t> values;  // by argument: addresses of buffers, sizes, the number of positions

  friend bool operator==(const GridLaunch&, const GridLaunch&) = default;
};

/// What a driver reads the values of a launch by, and the maps that follow them. It lasts as long as they stay where they are.
class LaunchArguments {
 public:
  LaunchArguments(const DeviceFacts& device, const GridLaunch& launch);
  void** pointers() { return pointers_.data(); }

 private:
  std::vector<EncodedMap> maps_;
  std::vector<void*> pointers_;
};

/// Launches that a driver keeps, and does at one call.
class LaunchGraph {
 public:
  /// Those of no blocks are left out. `asked`: the same launches, for their order.
  LaunchGraph(const DeviceFacts& device, std::vector<GridLaunch> launches, std::span<const DeviceLaunch> asked);
  ~LaunchGraph();
  LaunchGraph(const LaunchGraph&) = delete;
  LaunchGraph& operator=(const LaunchGraph&) = delete;

  /// Launches from now on differ in blocks and values, but the same are left out; the driver hears of those that do. What was launched
  /// before stays as it was.
  void patch(std::vector<GridLaunch>& launches);
  void launch(Stream stream) const;

 private:
  void add_nodes(std::span<const DeviceLaunch> asked);
  void let_go();

  const DeviceFacts& device_;
  std::vector<GridLaunch> launches_;
  std::vector<DriverNode> nodes_;  // by launch; null: left out
  DriverGraph graph_ = nullptr;
  DriverInstance instance_ = nullptr;
};

/// Kernels of an executable. A list of launches that comes again, of which the same are left out, becomes a graph, which is patched from
/// then on.
class LaunchedKernels : public DeviceKernels {
 public:
  LaunchedKernels(Memory& memory, std::vector<std::shared_ptr<const LoadedKernel>> kernels, CompileCounters counted);
  ~LaunchedKernels() override;

  void launch(std::size_t kernel, std::span<std::byte* const> buffers, std::span<const std::int64_t> sizes,
              std::int64_t positions) override;
  void launch_list(const void* list, std::span<const DeviceLaunch> launches, std::span<const std::int64_t> sizes) override;

 private:
  struct List {
    const void* of;
    std::vector<bool> launched;
    std::unique_ptr<LaunchGraph> graph;  // null: it came once
  };
  void fill(GridLaunch& made, const DeviceLaunch& asked, std::span<const std::int64_t> sizes) const;
  /// Null where it is new, or too short to be worth a graph; a new one is known from now on.
  List* known(const void* list, std::span<const DeviceLaunch> launches);
  void replay(List& list, std::span<const DeviceLaunch> launches, std::span<const std::int64_t> sizes);

  Memory& memory_;
  std::vector<std::shared_ptr<const LoadedKernel>> kernels_;
  std::mutex mutex_;  // of what follows
  std::vector<List> lists_;
  std::vector<GridLaunch> filled_;  // of the last list: its memory serves the next one
};

}  // namespace rlx::gpu
