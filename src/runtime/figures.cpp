// What devices were measured to do, and where that is kept.
#include <algorithm>
#include <mutex>
#include <sstream>

#include "backends/backend.h"
#include "base/fastest_seconds.h"
#include "lowering/object_cache.h"
#include "rlx/ops.h"
#include "rlx/version.h"

namespace rlx {
namespace {

constexpr double figure_budget = 0.1;  // seconds for each figure

/// A graph of a few ops, as a session computes it.
struct Timed {
  double seconds = 0, flops = 0, bytes = 0;  // of a run, whose operands and results stay where they are
  std::string arithmetic;                    // of the launch with the most operations
};

Array operand_of(const Input& input) {
  std::vector<std::int64_t> shape;
  for (const Dim& dim : input.type.shape) shape.push_back(dim.value());
  Array array(input.type.dtype, shape);
  for (std::int64_t i = 0; i < array.size(); ++i) array.set_double(i, 1);
  return array;
}

class Sampler {
 public:
  explicit Sampler(const Device& device) : device_(device) {}

  /// `known`: not timed where its arithmetic is one of these.
  Timed sample(const Graph& graph, const SessionOptions& options = {}, const std::map<std::string, double>& known = {}) const {
    const Executable executable = Session(device_, options).compile(graph);
    std::map<std::string, Feed> fed;
    for (const auto& [input, value] : graph.inputs()) fed.emplace(input.name, operand_of(input).to(device_));
    Timed sample;
    double most = -1;
    for (const LaunchReport& launch : executable.profile(fed, 0)) {
      sample.flops += launch.flops, sample.bytes += launch.bytes;
      if (launch.flops > most) most = launch.flops, sample.arithmetic = launch.arithmetic;
    }
    if (known.contains(sample.arithmetic)) return sample;
    executable.run(fed);
    sample.seconds = fastest_seconds(figure_budget, [&] { executable.run(fed); });
    return sample;
  }

  /// A run that brings an operand, and whose result is read.
  double round_trip(const Graph& graph) const {
    const Executable executable = Session(device_, {}).compile(graph);
    const std::map<std::string, Feed> fed{{"x", operand_of(graph.inputs()[0].first)}};
    return fastest_seconds(figure_budget, [&] { executable.run(fed)[0].bytes(); });
  }

 private:
  Device device_;
};

template <class Build>
Graph figures_graph(std::vector<std::int64_t> shape, const Build& build, DType dtype = f32) {
  Graph graph("figures");
  graph.output("y", build(graph.input("x", std::vector<Dim>(shape.begin(), shape.end()), dtype)));
  return graph;
}

void measure_products(const Sampler& sampler, std::map<std::string, double>& products) {
  constexpr std::int64_t size = 512;
  const auto measure = [&](DType dtype, Precision precision) {
    const Graph graph = figures_graph({size, size}, [](Value x) { return matmul(x, transpose(x, {1, 0})); }, dtype);
    const Timed sample = sampler.sample(graph, {.precision = precision}, products);
    if (sample.seconds > 0) products[sample.arithmetic] = sample.flops / sample.seconds;
  };
  for (const Precision precision : {Precision::f32, Precision::bf16, Precision::f16, Precision::int8}) measure(f32, precision);
  measure(f64, Precision::f32);
}

double measure_step(const Sampler& sampler) {
  const auto chain = [](int length) {
    return figures_graph({256}, [&](Value x) {
      for (int i = 0; i < length; ++i) x = tanh(x);
      return x;
    });
  };
  constexpr int length = 65;
  const SessionOptions apart{.fuse = false};
  const double difference = sampler.sample(chain(length), apart).seconds - sampler.sample(chain(1), apart).seconds;
  return std::max(difference, 1e-9) / (length - 1);
}

void measure_by_graphs(const Device& device, DeviceFigures& figures) {
  const Sampler sampler(device);
  measure_products(sampler, figures.products);
  const Timed attended = sampler.sample(figures_graph({1, 8, 256, 64}, [](Value x) { return attention(x, x * 2, x + 1); }));
  figures.attention = attended.flops / attended.seconds;
  const Timed computed = sampler.sample(figures_graph({1 << 20}, [](Value x) {
    Value y = x;
    for (int i = 0; i < 32; ++i) y = y * x + 0.5;
    return y;
  }));
  figures.arithmetic = computed.flops / computed.seconds;
  const Timed moved = sampler.sample(figures_graph({1 << 22}, [](Value x) { return x + 1; }));
  figures.moved = moved.bytes / moved.seconds;
  const Timed reduced = sampler.sample(figures_graph({2048, 2048}, [](Value x) { return sum(x, {1}); }));
  figures.reduced = reduced.bytes / reduced.seconds;
  figures.step = measure_step(sampler);
  if (!device.backend().memory()) return;
  const Graph one = figures_graph({1}, [](Value x) { return tanh(x); });
  figures.transfer = std::max(sampler.round_trip(one) - figures.step, 0.0);
}

/// The figures with their names.
std::map<std::string, double*> figure_fields(DeviceFigures& figures) {
  std::map<std::string, double*> all{
      {"flops", &figures.flops},       {"bytes", &figures.bytes},         {"launch", &figures.launch},         {"upload", &figures.upload},
      {"download", &figures.download}, {"attention", &figures.attention}, {"arithmetic", &figures.arithmetic}, {"moved", &figures.moved},
      {"reduced", &figures.reduced},   {"step", &figures.step},           {"transfer", &figures.transfer}};
  for (auto& [arithmetic, rate] : figures.products) all.emplace("product " + arithmetic, &rate);
  return all;
}

/// A line for each: its value and its name.
std::string text_of(DeviceFigures figures) {
  std::string text;
  for (const auto& [name, value] : figure_fields(figures)) text += fmt::format("{} {}\n", *value, name);
  return text;
}

std::optional<DeviceFigures> figures_from(const std::optional<std::vector<std::byte>>& bytes) {
  if (!bytes) return std::nullopt;
  DeviceFigures figures;
  std::istringstream lines(std::string(reinterpret_cast<const char*>(bytes->data()), bytes->size()));
  double value = 0;
  for (std::string name; lines >> value && std::getline(lines >> std::ws, name);) {
    if (name.starts_with("product ")) figures.products[name.substr(std::size("product ") - 1)] = value;
    else if (const auto known = figure_fields(figures); known.contains(name)) *known.at(name) = value;
  }
  return figures;
}

/// What the figures depend on: another driver, machine or version measures its own.
std::string key_of(const Backend& backend) {
  return fmt::format("figures of rlx {}: {}, {}, {}", version, backend.name(), backend.description(), backend.target({}).fingerprint);
}

ObjectCache kept_figures() {
  const std::filesystem::path folder = default_cache_folder();
  return ObjectCache(folder.empty() ? folder : folder / "devices");
}

}  // namespace

DeviceFigures Device::measure() const {
  DeviceFigures figures = backend_->measure();
  measure_by_graphs(*this, figures);
  std::string reason;
  kept_figures().store(key_of(*backend_), text_of(figures), reason);  // where it cannot be kept, it is measured again
  return figures;
}

DeviceFigures Device::figures() const {
  static std::mutex measuring;
  const std::scoped_lock lock(measuring);
  std::string reason;
  const auto kept = figures_from(kept_figures().find(key_of(*backend_), reason));
  return kept ? *kept : measure();
}

}  // namespace rlx
