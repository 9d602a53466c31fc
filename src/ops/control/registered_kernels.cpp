#include "ops/control/registered_kernels.h"

#include <algorithm>
#include <atomic>
#include <mutex>

#include "ir/op.h"
#include "ir/rebuild.h"
#include "ops/control/control.h"
#include "ops/control/host_call.h"

namespace rlx {
namespace {

/// A kernel, and the functions that were made of it: nodes that are equal call one.
struct Registered {
  HostKernel kernel;
  std::map<std::string, std::int64_t> functions = {};
};
using Kernels = std::map<std::string, std::shared_ptr<Registered>, std::less<>>;  // by op

struct Registry {
  std::mutex mutex;
  std::map<std::string, Kernels, std::less<>> kernels;  // by device
  std::atomic<std::uint64_t> changes = 0;
};

Registry& registry() {
  static auto* one = new Registry;  // not freed: functions of an interpreter that is gone by then
  return *one;
}

/// Those of the kind of device, and before them those of its name.
Kernels kernels_of(std::string_view device) {
  Registry& all = registry();
  const std::scoped_lock lock(all.mutex);
  Kernels found;
  for (const std::string_view name : {device, device.substr(0, device.find(':'))})
    if (const auto of = all.kernels.find(name); of != all.kernels.end()) found.insert(of->second.begin(), of->second.end());
  return found;
}

std::string name_of(const Node& node) {
  return node.op->name == Call::name ? Op<Call>::from(node.attrs).label : std::string(node.op->name);
}

std::int64_t function_of(Registered& registered, const Node& node) {
  const bool is_custom = node.op->name == Call::name;
  std::string key;
  for (const Attr& attr : node.attrs) key += is_custom ? "" : to_string(attr) + " ";
  for (const Type& type : node.results) key += type.to_string() + " ";
  const std::scoped_lock lock(registry().mutex);
  const auto [known, is_new] = registered.functions.try_emplace(key);
  if (!is_new) return known->second;
  std::map<std::string_view, Attr> attributes;
  for (std::size_t i = 0; i < node.attrs.size() && !is_custom; ++i) attributes.emplace(node.op->fields[i].name, node.attrs[i]);
  return known->second = keep_host_function(
             {[kernel = registered.kernel, attributes](std::span<const Array> operands) { return kernel(operands, attributes); },
              node.results});
}

Graph calling(const Graph& graph, const Kernels& kernels) {
  Rebuilder out(graph);
  const auto inside = [&](const Graph& region) { return calling(region, kernels); };
  for (const std::int32_t id : out.needed()) {
    const Node& node = graph.node(id);
    const auto kernel = kernels.find(name_of(node));
    out.replace(id, kernel == kernels.end()
                        ? emit(out.data(), *node.op, map_regions(node.attrs, inside), out.operands(id))
                        : emit(out.data(), find_op("host_call"), {function_of(*kernel->second, node)}, out.operands(id)));
  }
  return out.finish();
}

}  // namespace

void keep_kernel(std::string_view op, std::string_view device, HostKernel kernel) {
  if (op.empty()) fail("rlx.register_kernel: an op without a name (allowed: those of `rlx ops` and of custom_op)");
  const auto known = op_registry().find(op);
  if (known != op_registry().end() &&
      std::ranges::any_of(known->second->fields, [](const Field& field) { return std::holds_alternative<Region>(field.initial); }))
    fail("rlx.register_kernel: {} has parts that are graphs (allowed: other ops of `rlx ops`, and those of custom_op)", op);
  Registry& all = registry();
  const std::scoped_lock lock(all.mutex);
  ++all.changes;
  Kernels& kernels = all.kernels[std::string(device)];
  if (kernel) kernels.insert_or_assign(std::string(op), std::make_shared<Registered>(std::move(kernel)));
  else if (const auto found = kernels.find(op); found != kernels.end()) kernels.erase(found);
}

std::uint64_t registrations() { return registry().changes; }

Graph with_registered_kernels(const Graph& graph, std::string_view device) {
  const Kernels kernels = kernels_of(device);
  return kernels.empty() ? graph : calling(graph, kernels);
}

}  // namespace rlx
