#pragma once
#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "backends/host_code.h"
#include "base/function_ref.h"
#include "emit/emit.h"
#include "lowering/target.h"
#include "rlx/error.h"
#include "rlx/session.h"

namespace rlx {

/// A launch of a list, see DeviceKernels::launch.
struct DeviceLaunch {
  std::size_t kernel = 0;
  std::span<std::byte* const> buffers = {};
  std::int64_t positions = 0;       // 0: it is left out
  std::span<const int> after = {};  // the places in the list, before its own, of those that it must not overtake
};

/// Kernels that a device has compiled.
struct DeviceKernels {
  DeviceKernels() = default;
  DeviceKernels(const DeviceKernels&) = delete;
  DeviceKernels& operator=(const DeviceKernels&) = delete;
  virtual ~DeviceKernels() = default;

  CompileCounters counters;  // of their loading

  /// Puts a launch behind what was asked for before: `kernel`, the number of its text, for positions 0..positions-1 of its grid. `buffers`
  /// by kernel buffer: addresses of the device, multiples of the element's size. `sizes`: the values of the kernel's symbols.
  virtual void launch(std::size_t kernel, std::span<std::byte* const> buffers, std::span<const std::int64_t> sizes,
                      std::int64_t positions) = 0;
  /// Puts all of them there. `list` stands for who asks: what a list of his took before may be kept for the next one.
  virtual void launch_list(const void* /*list*/, std::span<const DeviceLaunch> launches, std::span<const std::int64_t> sizes) {
    for (const DeviceLaunch& each : launches)
      if (each.positions > 0) launch(each.kernel, each.buffers, sizes, each.positions);
  }
};

/// A device with memory of its own, whose addresses stand for it wherever addresses of the host do, but must not be followed: what counts
/// on from one names a place in the same memory. Everything is done in the order in which it was asked for; who asks does not wait, but
/// where the host reads. Calls may come from several threads. All throw Error: names the device, what was asked for, what the driver said.
struct DeviceMemory {
  DeviceMemory() = default;
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;
  virtual ~DeviceMemory() = default;

  /// So many bytes, of any values; no bytes have an address, too. Let go, they are free once what was asked for before is done.
  virtual std::shared_ptr<std::byte> allocate(std::int64_t bytes) = 0;
  /// The most that one `allocate` can give.
  virtual std::int64_t largest_buffer() const { return std::int64_t{1} << 62; }
  /// Memory of the host as it is: the device reads it where it lies, and never writes to it. Null: it cannot, and gets a copy else.
  virtual std::shared_ptr<std::byte> wrap(std::span<const std::byte> /*bytes*/, std::shared_ptr<const void> /*owner*/) { return nullptr; }
  /// `from` may change once it returns.
  virtual void upload(std::byte* to, std::span<const std::byte> from) = 0;
  virtual void download(std::span<std::byte> to, const std::byte* from) = 0;
  /// Both on the device; they may be parts of one memory, but do not overlap.
  virtual void copy(std::byte* to, const std::byte* from, std::int64_t bytes) = 0;
  virtual void clear(std::byte* to, std::int64_t bytes) = 0;
  /// A copy here of what lies in the memory of another device; null: it goes by way of the host.
  virtual std::shared_ptr<std::byte> copy_from(DeviceMemory& /*other*/, const std::byte* /*from*/, std::int64_t /*bytes*/) {
    return nullptr;
  }
  /// `cache`: where what was compiled is kept; empty: nowhere.
  virtual std::unique_ptr<DeviceKernels> load(std::span<const KernelText> texts, const std::filesystem::path& cache) = 0;
  /// Waits until all that was asked for is done.
  virtual void finish() = 0;
  /// The seconds that the device takes for what `work` asks of it; all is done then.
  virtual double seconds(FunctionRef<void()> work) {
    finish();
    const auto begin = std::chrono::steady_clock::now();
    work();
    finish();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }
  struct Room {
    std::int64_t free, all;
  };
  /// How many bytes are free, and how many there are; nothing where that is the host's memory.
  virtual std::optional<Room> room() const { return std::nullopt; }
};

/// Computes a node of a graph, or of one of its regions, for a device that takes whole graphs and does not have its op.
using HostNode =
    std::function<std::vector<Array>(const Graph& graph, std::int32_t node, const Bindings& bindings, std::span<const Array> operands)>;

/// The inputs of one run of a taken graph.
struct TakenInputs {
  std::vector<const Array*> arrays;        // by input
  std::vector<bool> given_away;            // by input: a state that nobody else reads, whose memory the run may take
  std::shared_ptr<const void> parameters;  // another one where a parameter was bound anew
  Bindings bindings;
};

/// A graph that a device computes as a whole. Runs may come from several threads at a time.
struct TakenGraph {
  explicit TakenGraph(Graph taken) : graph(std::move(taken)) {}
  TakenGraph(const TakenGraph&) = delete;
  TakenGraph& operator=(const TakenGraph&) = delete;
  virtual ~TakenGraph() = default;

  /// The outputs, in memory that the host reads. Throws Error: names the device, and what failed.
  virtual std::vector<Array> run(const TakenInputs& inputs) = 0;
  /// Why a node is the host's; nothing where the device computes it.
  virtual std::optional<std::string> left_to_host(const Graph& graph, const Node& node) const = 0;

  /// What the device says of what its runs computed so far, and where: a unit of it, and a list of operations.
  virtual std::vector<std::pair<std::string, std::string>> placements() { return {}; }

  const Graph graph;  // as it is computed: primitives, and the composites that the device has
};

/// Throws Error where they name a level of the CPU, which no other device has.
inline void refuse_cpu_level(const SessionOptions& options, std::string_view device) {
  if (!options.cpu_level.empty()) fail("session: cpu_level '{}' is of the CPU, and the device is {}", options.cpu_level, device);
}

/// What a device brings: a folder beside this file, which src/runtime/device.cpp names.
struct Backend {
  Backend() = default;
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;
  virtual ~Backend() = default;

  /// See Device.
  virtual std::string name() const = 0;
  virtual std::string description() const = 0;
  virtual DeviceFigures measure() const { return {}; }
  /// What a session with these options makes programs for. Throws Error where they name what the device does not have.
  virtual TargetDevice target(const SessionOptions& options) const = 0;
  /// The memory that all sessions of the device share; null: that of the host.
  virtual DeviceMemory* memory() const { return nullptr; }
  /// Whether it computes whole graphs, by `take`, in place of the kernels of a program.
  virtual bool takes_graphs() const { return false; }
  /// The graph, ready to run. `on_host` computes the nodes that the device leaves.
  virtual std::unique_ptr<TakenGraph> take(const Graph& /*graph*/, const SessionOptions& /*options*/, HostNode /*on_host*/) const {
    return nullptr;
  }
  /// What runs a session's programs, made for `target`, by so many threads. Null: the device has memory of its own, or takes whole graphs.
  virtual std::unique_ptr<HostCode> host_code(const TargetDevice& /*target*/, const SessionOptions& /*options*/, int /*threads*/) const {
    return nullptr;
  }
};

}  // namespace rlx
