// Graphs of kernels for the driver without a GPU: a node's arguments are copied when they are set, what a node needs is launched before it,
// and what is in no order comes in one that is none. Only what a driver allows is taken: the nodes of an instance keep their kernels.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "fake_gpu/entries.h"

extern "C" int NAMED(cuLaunchKernel, hipModuleLaunchKernel)(const void* function, unsigned x, unsigned y, unsigned z, unsigned threads,
                                                            unsigned block_y, unsigned block_z, unsigned shared_bytes, void* stream,
                                                            void** arguments, void** extra);
int fake_argument_count(const void* function);
int fake_argument_bytes(const void* function, std::size_t argument);

namespace {

constexpr int success = 0, invalid_value = 1, update_failure = 910;

struct KernelNode {
#ifdef RLX_FAKE_HIP
  unsigned threads[3];
  void** extra;
  const void* function;
  unsigned blocks[3];
  void** arguments;
  unsigned shared_bytes;
#else
  const void* function;
  unsigned blocks[3], threads[3], shared_bytes;
  void** arguments;
  void** extra;
#endif
};

struct alignas(64) Value {
  char bytes[128];
};
struct Node {
  KernelNode kernel;
  std::vector<Value> values;
  std::vector<const Node*> after;
};
struct Graph {
  std::vector<std::unique_ptr<Node>> nodes;
};
struct Instance {
  std::vector<const Node*> of;  // by node: that of the graph
  std::vector<Node> nodes;
  unsigned launches = 0;
};

bool set(Node& node, const KernelNode& kernel) {
  if (!kernel.function || !kernel.arguments || kernel.extra || kernel.blocks[0] == 0 || kernel.threads[0] == 0) return false;
  node.kernel = kernel;
  node.values.resize(static_cast<std::size_t>(fake_argument_count(kernel.function)));
  for (std::size_t i = 0; i < node.values.size(); ++i)
    std::memcpy(&node.values[i], kernel.arguments[i],
                std::min(sizeof(Value), static_cast<std::size_t>(fake_argument_bytes(kernel.function, i))));
  return true;
}

int launch(Node& node, void* stream) {
  std::vector<void*> arguments;
  for (Value& value : node.values) arguments.push_back(&value);
  const KernelNode& k = node.kernel;
  return NAMED(cuLaunchKernel, hipModuleLaunchKernel)(k.function, k.blocks[0], k.blocks[1], k.blocks[2], k.threads[0], k.threads[1],
                                                      k.threads[2], k.shared_bytes, stream, arguments.data(), nullptr);
}

}  // namespace

ENTRY(int, cuGraphCreate, hipGraphCreate)(Graph** graph, unsigned flags) {
  *graph = new Graph;
  return flags == 0 ? success : invalid_value;
}
ENTRY(int, cuGraphDestroy, hipGraphDestroy)(Graph* graph) {
  delete graph;
  return success;
}
ENTRY(int, cuGraphAddKernelNode, hipGraphAddKernelNode)(const Node** added, Graph* graph, const Node* const* after, std::size_t count,
                                                        const KernelNode* kernel) {
  auto node = std::make_unique<Node>();
  if (!set(*node, *kernel)) return invalid_value;
  for (std::size_t i = 0; i < count; ++i) {
    if (std::ranges::none_of(graph->nodes, [&](const auto& each) { return each.get() == after[i]; })) return invalid_value;
    node->after.push_back(after[i]);
  }
  *added = graph->nodes.emplace_back(std::move(node)).get();
  return success;
}
ENTRY(int, cuGraphInstantiate_v2, hipGraphInstantiate)(Instance** instance, const Graph* graph, const Node**, char*, std::size_t) {
  *instance = new Instance;
  for (const auto& node : graph->nodes) (*instance)->of.push_back(node.get()), (*instance)->nodes.push_back(*node);
  return success;
}
ENTRY(int, cuGraphExecDestroy, hipGraphExecDestroy)(Instance* instance) {
  delete instance;
  return success;
}
ENTRY(int, cuGraphExecKernelNodeSetParams, hipGraphExecKernelNodeSetParams)(Instance* instance, const Node* node,
                                                                            const KernelNode* kernel) {
  const auto found = std::ranges::find(instance->of, node);
  if (found == instance->of.end()) return invalid_value;
  Node& mine = instance->nodes[static_cast<std::size_t>(found - instance->of.begin())];
  if (kernel->function != mine.kernel.function) return update_failure;
  return set(mine, *kernel) ? success : invalid_value;
}
ENTRY(int, cuGraphLaunch, hipGraphLaunch)(Instance* instance, void* stream) {
  std::vector<std::size_t> waiting(instance->nodes.size());
  for (std::size_t i = 0; i < waiting.size(); ++i) waiting[i] = i;
  std::set<const Node*> launched;
  unsigned random = ++instance->launches;
  while (!waiting.empty()) {
    std::vector<std::size_t> ready;
    for (const std::size_t i : waiting)
      if (std::ranges::all_of(instance->nodes[i].after, [&](const Node* before) { return launched.contains(before); })) ready.push_back(i);
    random = random * 1664525U + 1013904223U;
    const std::size_t next = ready[(random >> 16) % ready.size()];
    if (const int code = launch(instance->nodes[next], stream); code != success) return code;
    launched.insert(instance->of[next]);
    std::erase(waiting, next);
  }
  return success;
}
