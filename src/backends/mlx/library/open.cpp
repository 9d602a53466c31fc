// The devices of MLX, for the library that looks for this one.
#include <variant>

#include "backends/mlx/backend.h"
#include "backends/mlx/library/taken_graph.h"
#include "passes/expand.h"
#include "passes/legalize.h"

namespace rlx::mlx {
namespace {

/// Of primitives.
bool is_no_expansion(const Graph& /*graph*/, const Node& node) {
  const Row<Rule>* const row = table().find(node.op->name);
  return !row || row->rule || !row->reason.empty();
}

struct MlxDevice final : Backend {
  explicit MlxDevice(const mx::Device& of) : device(of) {}

  std::string name() const override { return device == mx::Device::cpu ? "mlx:cpu" : "mlx:gpu"; }
  std::string description() const override {
    const auto& facts = mx::device_info(device);
    const auto title = facts.find("device_name");
    const std::string what = title == facts.end() ? "" : std::get<std::string>(title->second) + "; ";
    return fmt::format("{}MLX {}, computes in f32, f16, bf16{}", what, mx::version(), has(f64, device) ? ", f64" : "");
  }
  TargetDevice target(const SessionOptions& options) const override {
    refuse_cpu_level(options, name());
    Caps caps;
    caps.multiplied = {f32, f16, bf16};
    return {"mlx", mx::version(), 0, std::move(caps), nullptr};
  }
  bool takes_graphs() const override { return true; }
  std::unique_ptr<TakenGraph> take(const Graph& graph, const SessionOptions& options, HostNode on_host) const override {
    const IsClaimed whole = [&](const Graph& of, const Node& node) { return options.claims && table().taking(of, node) != nullptr; };
    const Graph expanded = expand(graph, whole, is_no_expansion);
    return std::make_unique<MlxGraph>(legalize(
                                          expanded, [this](DType dtype) { return has(dtype, device) || dtype == f64; }, whole),
                                      name(), device, options, std::move(on_host));
  }

  mx::Device device;
};

const Library* open() {
  static const Library& library = *new Library([] {
    Library found;
    for (const auto type : {mx::Device::gpu, mx::Device::cpu})
      if (mx::is_available(mx::Device(type))) found.backends.push_back(new MlxDevice(mx::Device(type)));
    return found;
  }());
  return &library;
}

}  // namespace
}  // namespace rlx::mlx

extern "C" const rlx::mlx::Library* rlx_open_mlx() { return rlx::mlx::open(); }
