#include "backends/gpu/launches.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <set>
#include <utility>

#include "backends/gpu/memory.h"

namespace rlx::gpu {
namespace {

/// Few positions are shared among all units; a wave of HIP has up to 64 threads.
unsigned threads_of_block(const DeviceFacts& device, std::int64_t positions) {
  constexpr int least = 64;
  return positions < device.units * most_cuda_threads ? least : most_cuda_threads;
}

/// Calls `with` a node of the vendor's layout.
template <class With>
Code with_node(const DeviceFacts& device, const GridLaunch& launch, const With& with) {
  LaunchArguments arguments(device, launch);
  const auto on_chip = static_cast<unsigned>(launch.kernel->on_chip_bytes);
  const CudaKernelNode cuda{launch.kernel->function, {launch.blocks, 1, 1}, {launch.threads, 1, 1}, on_chip, arguments.pointers(), nullptr};
  const RocmKernelNode rocm{{launch.threads, 1, 1}, nullptr, launch.kernel->function, {launch.blocks, 1, 1}, arguments.pointers(), on_chip};
  return device.driver->vendor == Vendor::cuda ? with(static_cast<const void*>(&cuda)) : with(static_cast<const void*>(&rocm));
}

}  // namespace

LaunchArguments::LaunchArguments(const DeviceFacts& device, const GridLaunch& launch)
    : maps_(encoded_maps(device, *launch.kernel, launch.values)) {
  pointers_.reserve(launch.values.size() + maps_.size());
  for (const std::uint64_t& value : launch.values) pointers_.push_back(const_cast<std::uint64_t*>(&value));
  for (EncodedMap& map : maps_) pointers_.push_back(&map);
}

LaunchGraph::LaunchGraph(const DeviceFacts& device, std::vector<GridLaunch> launches, std::span<const DeviceLaunch> asked)
    : device_(device), launches_(std::move(launches)), nodes_(launches_.size()) {
  try {
    add_nodes(asked);
  } catch (...) {
    let_go();
    throw;
  }
}

void LaunchGraph::add_nodes(std::span<const DeviceLaunch> asked) {
  const Driver& driver = *device_.driver;
  check(device_, driver.CreateGraph(&graph_, 0), "recording {} launches", launches_.size());
  std::vector<std::set<DriverNode>> stands_for(launches_.size());  // by launch: what others wait for in its place
  for (std::size_t i = 0; i < launches_.size(); ++i) {
    std::set<DriverNode>& nodes = stands_for[i];
    for (const int before : asked[i].after)
      nodes.insert(stands_for.at(static_cast<std::size_t>(before)).begin(), stands_for[static_cast<std::size_t>(before)].end());
    if (launches_[i].blocks == 0) continue;
    const std::vector<DriverNode> after(nodes.begin(), nodes.end());
    const auto add = [&](const void* node) { return driver.AddKernelNode(&nodes_[i], graph_, after.data(), after.size(), node); };
    check(device_, with_node(device_, launches_[i], add), "recording kernel {}", launches_[i].kernel->name);
    nodes = {nodes_[i]};
  }
  check(device_, driver.Instantiate(&instance_, graph_, nullptr, nullptr, 0), "recording {} launches", launches_.size());
}

void LaunchGraph::let_go() {
  if (instance_) device_.driver->DestroyInstance(instance_);
  if (graph_) device_.driver->DestroyGraph(graph_);
}

LaunchGraph::~LaunchGraph() { let_go(); }

void LaunchGraph::patch(std::vector<GridLaunch>& launches) {
  const Driver& driver = *device_.driver;
  for (std::size_t i = 0; i < launches_.size(); ++i) {
    if (!nodes_[i] || launches_[i] == launches[i]) continue;
    const auto set = [&](const void* node) { return driver.SetKernelNode(instance_, nodes_[i], node); };
    check(device_, with_node(device_, launches[i], set), "changing what kernel {} is launched with", launches[i].kernel->name);
    std::swap(launches_[i], launches[i]);
  }
}

void LaunchGraph::launch(Stream stream) const {
  check(device_, device_.driver->LaunchGraph(instance_, stream), "launching {} kernels, of which {} is the first", launches_.size(),
        launches_.front().kernel->name);
}

LaunchedKernels::LaunchedKernels(Memory& memory, std::vector<std::shared_ptr<const LoadedKernel>> kernels, CompileCounters counted)
    : memory_(memory), kernels_(std::move(kernels)) {
  counters = std::move(counted);
}

/// Graphs may be at work.
LaunchedKernels::~LaunchedKernels() {
  const bool has_graphs = std::ranges::any_of(lists_, [](const List& list) { return list.graph != nullptr; });
  if (has_graphs) memory_.driver().Synchronize(memory_.stream());
}

void LaunchedKernels::fill(GridLaunch& made, const DeviceLaunch& asked, std::span<const std::int64_t> sizes) const {
  const LoadedKernel& kernel = *kernels_.at(asked.kernel);
  const DeviceFacts& device = memory_.device();
  if (asked.buffers.size() != kernel.element_bytes.size())
    fail_internal("{}: kernel {} takes {} buffers, and gets {}", device.name, kernel.name, kernel.element_bytes.size(),
                  asked.buffers.size());
  made.kernel = &kernel;
  made.values.clear();
  if (asked.positions <= 0) {
    made.blocks = 0;
    return;
  }
  for (std::size_t b = 0; b < asked.buffers.size(); ++b) {
    const auto address = std::bit_cast<std::uintptr_t>(asked.buffers[b]);
    if (address % static_cast<std::uintptr_t>(kernel.element_bytes[b]) != 0)
      fail_internal("{}: buffer {} of kernel {} begins inside of an element", device.name, b, kernel.name);
    made.values.push_back(address);
  }
  for (const std::int64_t size : sizes) made.values.push_back(static_cast<std::uint64_t>(size));
  made.values.push_back(static_cast<std::uint64_t>(asked.positions));
  const bool in_groups = kernel.group > 0;
  made.threads = in_groups ? static_cast<unsigned>(kernel.group) : threads_of_block(device, asked.positions);
  const std::int64_t blocks = in_groups ? asked.positions : (asked.positions + made.threads - 1) / made.threads;
  constexpr std::int64_t most_blocks = std::numeric_limits<int>::max();
  if (blocks > most_blocks) fail("{}: kernel {} has {} blocks (allowed: {})", device.name, kernel.name, blocks, most_blocks);
  made.blocks = static_cast<unsigned>(blocks);
}

void LaunchedKernels::launch(std::size_t kernel, std::span<std::byte* const> buffers, std::span<const std::int64_t> sizes,
                             std::int64_t positions) {
  if (positions <= 0) return;
  GridLaunch made;
  fill(made, {kernel, buffers, positions}, sizes);
  memory_.launch(made);
}

LaunchedKernels::List* LaunchedKernels::known(const void* list, std::span<const DeviceLaunch> launches) {
  constexpr std::ptrdiff_t least = 4;
  constexpr std::size_t most_lists = 64;
  const auto is_launched = [](const DeviceLaunch& each) { return each.positions > 0; };
  if (std::ranges::count_if(launches, is_launched) < least) return nullptr;
  const auto found = std::ranges::find_if(
      lists_, [&](const List& each) { return each.of == list && std::ranges::equal(each.launched, launches, {}, {}, is_launched); });
  if (found != lists_.end()) return &*found;
  if (lists_.size() == most_lists) {
    memory_.finish();
    lists_.erase(lists_.begin());
  }
  List& added = lists_.emplace_back(list);
  for (const DeviceLaunch& each : launches) added.launched.push_back(is_launched(each));
  return nullptr;
}

void LaunchedKernels::replay(List& list, std::span<const DeviceLaunch> launches, std::span<const std::int64_t> sizes) {
  memory_.driver();
  filled_.resize(launches.size());
  for (std::size_t i = 0; i < launches.size(); ++i) fill(filled_[i], launches[i], sizes);
  try {
    if (list.graph) list.graph->patch(filled_);
    else list.graph = std::make_unique<LaunchGraph>(memory_.device(), std::exchange(filled_, {}), launches);
    list.graph->launch(memory_.stream());
  } catch (...) {
    list.graph.reset();  // patched in part
    throw;
  }
}

void LaunchedKernels::launch_list(const void* list, std::span<const DeviceLaunch> launches, std::span<const std::int64_t> sizes) {
  const std::lock_guard lock(mutex_);
  if (List* const again = known(list, launches)) return replay(*again, launches, sizes);
  GridLaunch made;
  for (const DeviceLaunch& each : launches) {
    if (each.positions <= 0) continue;
    fill(made, each, sizes);
    memory_.launch(made);
  }
}

}  // namespace rlx::gpu
