// The choice of a device by what a graph is expected to take on each.
#include "runtime/reports/automatic.h"

#include <algorithm>
#include <array>

#include "backends/backend.h"
#include "lowering/slots.h"
#include "ops/control/control.h"
#include "runtime/executable.h"

namespace rlx {
namespace {

bool reduces_rows(const GeneratedKernel& kernel) {
  return std::ranges::any_of(kernel.kernel.exprs, [](const Expr& e) { return !e.variables.empty(); });
}

class Estimator {
 public:
  Estimator(const Bindings& sizes, bool remote, const DeviceFigures& figures, const DeviceFigures& host)
      : sizes_(sizes), remote_(remote), figures_(figures), host_(host) {}

  void add(const Program& program, const std::vector<bool>& once, double times) {
    for (std::size_t l = 0; l < program.launches.size(); ++l) {
      const Launch& launch = program.launches[l];
      if (once[l]) continue;
      if (launch.kind == Launch::Kind::control) add_regions(program, launch, times);
      else if (launch.kind == Launch::Kind::host && remote_) add_host(program.graph, launch, times);
      else add_launch(program, launch, times);
    }
  }

  void add_transfers(double bytes_there, double bytes_back, double transfers) {
    if (!remote_) return;
    total.transfers += transfers * figures_.transfer + bytes_there / figures_.upload + bytes_back / figures_.download;
  }

  double bytes(const Type& type) const { return static_cast<double>(bytes_for(type.dtype, type.size().evaluate(sizes_))); }

  DeviceEstimate total;

 private:
  double bytes(const Graph& graph, const std::vector<ValueId>& values) const {
    double all = 0;
    for (ValueId v : values) all += bytes(graph.type(v));
    return all;
  }

  /// A scan's step runs as often as it is long. Of other regions nobody knows how often they run.
  void add_regions(const Program& program, const Launch& launch, double times) {
    const Node& node = program.graph.node(launch.node.node);
    if (node.op == &Op<Scan>::def()) times *= static_cast<double>(Op<Scan>::from(node.attrs).length[0].evaluate(sizes_));
    for (const Attr& attr : node.attrs)
      if (const auto* region = std::get_if<Region>(&attr))
        if (const auto inner = program.regions.find(region->get()); inner != program.regions.end())
          add(*inner->second, prepared_launches(*inner->second, true), times);
  }

  void add_host(const Graph& graph, const Launch& launch, double times) {
    const double there = bytes(graph, launch.reads), back = bytes(graph, launch.writes);
    add_transfers(times * there, times * back, times * static_cast<double>(launch.writes.size()));
    total.memory += times * (there + back) / host_.moved;
  }

  void add_launch(const Program& program, const Launch& launch, double times) {
    const Cost cost = rlx::cost(program, launch, sizes_);
    const bool by_hand = launch.kind != Launch::Kind::kernel || launch.claimed,
               reduces = by_hand || std::ranges::any_of(launch.kernels, reduces_rows);
    const double computing = cost.flops / (reduces ? rate(program.graph, launch) : figures_.arithmetic);
    const double bandwidth = by_hand ? std::max(figures_.moved, figures_.reduced) : reduces ? figures_.reduced : figures_.moved;
    const double moving = cost.bytes / bandwidth;
    total.launches += times * figures_.step;
    (computing > moving ? total.computing : total.memory) += times * std::max(computing, moving);
  }

  double rate(const Graph& graph, const Launch& launch) const {
    if (figures_.attention > 0 && launch.claimed && launch.node.node >= 0 && graph.node(launch.node.node).op->name == "attention")
      return figures_.attention;
    const auto known = figures_.products.find(arithmetic_of(graph, launch));
    return known == figures_.products.end() ? figures_.products.at("f32") : known->second;
  }

  const Bindings& sizes_;
  bool remote_;
  const DeviceFigures &figures_, &host_;
};

Bindings sizes_of(const Graph& graph, const std::map<std::string, std::int64_t>& given) {
  constexpr std::int64_t usual = 128;
  Bindings sizes;
  for (const auto& [symbol, bound] : graph.symbols()) sizes[symbol] = std::min(bound, usual);
  for (const auto& [symbol, size] : given) sizes[symbol] = size;
  return sizes;
}

/// Stands for another device until a session knows which.
struct Automatic : Backend {
  std::string name() const override { return "auto"; }
  std::string description() const override { return "the device that is expected to be the fastest"; }
  TargetDevice target(const SessionOptions& options) const override { return Device::cpu().backend().target(options); }
};

const Automatic automatic_backend;

}  // namespace

DeviceEstimate estimate(const Program& program, const Bindings& sizes, bool remote, const DeviceFigures& figures,
                        const DeviceFigures& host) {
  Estimator all(sizes, remote, figures, host);
  all.add(program, prepared_launches(program), 1);
  const Graph& graph = program.graph;
  double there = 0, back = 0;
  for (const auto& [input, value] : graph.inputs())
    if (input.kind == InputKind::input) there += all.bytes(input.type);
  for (const auto& [name, value] : graph.outputs()) back += all.bytes(value.type());
  all.add_transfers(there, back, static_cast<double>(graph.outputs().size()));
  DeviceEstimate& total = all.total;
  total.seconds = total.launches + total.computing + total.memory + total.transfers;
  return total;
}

std::string_view DeviceEstimate::bound() const {
  const std::array<std::pair<double, std::string_view>, 4> parts{
      {{launches, "launches"}, {computing, "compute"}, {memory, "memory"}, {transfers, "transfers"}}};
  return std::ranges::max_element(parts, {}, [](const auto& part) { return part.first; })->second;
}

std::vector<DeviceEstimate> Device::estimates(const Graph& graph, const SessionOptions& options,
                                              const std::map<std::string, std::int64_t>& sizes) {
  const DeviceFigures host = cpu().figures();
  std::vector<DeviceEstimate> all;
  for (const Device& device : Device::all()) {
    DeviceEstimate one;
    try {
      if (device.backend().takes_graphs()) fail("{} takes whole graphs, whose time is not estimated", device.name());
      const Program program = lower_for(graph, options, device, device.backend().target(options)).program;
      one = estimate(program, sizes_of(graph, sizes), device.backend().memory() != nullptr, device.figures(), host);
    } catch (const Error& error) {
      one.refused = error.what();
    }
    one.device = device.name();
    all.push_back(std::move(one));
  }
  std::ranges::stable_sort(all, {}, [](const DeviceEstimate& one) { return std::pair(!one.refused.empty(), one.seconds); });
  return all;
}

namespace {

Device best_of(const std::vector<DeviceEstimate>& estimates) {
  if (!estimates.front().refused.empty()) fail("no device runs the graph: {}", estimates.front().refused);
  return Device::named(estimates.front().device);
}

}  // namespace

Device Device::best(const Graph& graph) { return best_of(estimates(graph, {})); }

Device Device::automatic() { return Device(automatic_backend); }

const Session& Session::State::chosen_for(const Graph& graph) {
  const std::scoped_lock lock(choosing);
  if (chosen) return *chosen;
  estimates = Device::estimates(graph, options);
  return chosen.emplace(best_of(estimates), options);
}

const Session* Session::State::chosen_already() const {
  const std::scoped_lock lock(choosing);
  return chosen ? &*chosen : nullptr;
}

}  // namespace rlx
