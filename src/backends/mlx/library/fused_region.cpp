#include "backends/mlx/library/fused_region.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>

#include "base/fastest_seconds.h"
#include "emit/c_dialect.h"
#include "ir/array_type.h"
#include "ir/graph_data.h"
#include "ir/rebuild.h"
#include "ir/reference.h"
#include "ir/sources.h"
#include "lowering/lowering.h"

namespace rlx::mlx {
namespace {

constexpr std::size_t most_arguments = 31;  // of Metal's kernels; one of them has the sizes
constexpr int group_threads = 256;
constexpr double budget = 0.01;  // seconds to measure each way

bool has_kernels(DType t) { return t == f32 || t == f16 || t == bf16 || is_bool(t) || (is_integer(t) && !is_packed(t)); }

/// What kernels see: narrow floats and bools as their bits.
mx::Dtype kernel_type(DType t) { return is_bool(t) ? mx::uint8 : t == f16 || t == bf16 ? mx::uint16 : dtype_of(t); }

/// One element behind the other.
mx::array as_kernels_read(const mx::array& x, DType t) {
  const mx::array flat = mx::flatten(x);
  return kernel_type(t) == x.dtype() ? flat : mx::view(mx::contiguous(flat), kernel_type(t));
}

TargetDevice target() {
  Caps caps;
  caps.lacks = {f64};
  caps.schedule = {.lanes = true};
  return {"mlx", {}, 0, std::move(caps), [](const Kernel& kernel, const Caps& c) { return emit_metal_body(kernel, c.schedule); }};
}

bool computes(const Node& node) { return node.op->kind == OpKind::scalar || node.op->name == "reduce"; }

/// Whether the inputs have every symbol on which something depends.
bool names_sizes(const Graph& graph) {
  std::map<std::string, std::int64_t> all = graph.symbols();
  const std::size_t known = all.size();
  for (const std::int32_t id : needed_nodes(graph.data(), output_ids(graph)))
    for (const Dim& dim : graph.node(id).results[0].shape) dim.collect_symbols(all);
  return all.size() == known;
}

/// Where the elements of a value lie that is moved alone; false: nowhere between runs.
bool add_sources(const Graph& graph, ValueId v, std::vector<ValueId>& sources) {
  const Node& node = graph.node(v.node);
  if (constant_value(node)) return true;  // a part of the kernels
  if (is_input(node)) return sources.push_back(v), true;
  return node.op->sources && FusedRegion::joins(graph, node) &&
         std::ranges::all_of(node.operands, [&](ValueId operand) { return add_sources(graph, operand, sources); });
}
/// What a region reads of a value that is the same in all runs: kernels spread parameters over axes themselves.
void add_kept(const Graph& graph, ValueId v, std::vector<ValueId>& reads) {
  std::vector<ValueId> sources;
  if (!add_sources(graph, v, sources)) sources = {v};
  for (const ValueId source : sources)
    if (std::ranges::find(reads, source) == reads.end()) reads.push_back(source);
}

bool is_one_kernel(const Launch& launch) {
  return launch.kind == Launch::Kind::kernel && launch.kernels.size() == 1 && launch.kernels[0].kernel.buffers.size() < most_arguments;
}

mx::fast::CustomKernelFunction function_of(const GeneratedKernel& kernel) {
  const std::string& text = kernel.text.text;
  const std::size_t mark = text.find(metal_body_mark);
  std::vector<std::string> inputs, outputs;
  std::string pointers;
  for (std::size_t i = 0; i < kernel.kernel.buffers.size(); ++i) {
    (kernel.kernel.buffers[i].written ? outputs : inputs).push_back(fmt::format("x{}", i));
    pointers += fmt::format("auto b{0} = x{0} + {1};\n", i, kernel.first[i]);  // in one address space or another
  }
  if (!kernel.kernel.symbols.empty()) inputs.emplace_back("sizes");
  return mx::fast::metal_kernel(kernel.text.name, inputs, outputs, pointers + text.substr(mark + metal_body_mark.size()),
                                text.substr(0, mark));
}

}  // namespace

bool FusedRegion::joins(const Graph& graph, const Node& node) {
  return (computes(node) || node.op->sources) && node.op->name != "reinterpret" && node.results.size() == 1 &&
         has_kernels(node.results[0].dtype) &&
         std::ranges::all_of(node.operands, [&](ValueId v) { return has_kernels(graph.type(v).dtype); });
}

void FusedRegion::check(const mx::Device& device) {
  try {
    mx::fast::metal_kernel("rlx_check", {}, {"y"}, "y[0] = 0;")({}, {{1}}, {mx::float32}, {1, 1, 1}, {1, 1, 1}, {}, {}, false, device);
  } catch (const std::exception& error) {
    fail("modes fused and measured need kernels of Metal: {} (allowed here: lazy, eager, compiled)", error.what());
  }
}

std::unique_ptr<const FusedRegion> FusedRegion::of(const Graph& graph, const NodeOrder& order, const Segment& segment,
                                                   const mx::Device& device) {
  std::vector<ValueId> reads = segment.reads;
  for (const std::size_t step : segment.steps)
    for (const ValueId v : graph.node(order.steps[step].node).operands)
      if (order.kept[static_cast<std::size_t>(v.node)]) add_kept(graph, v, reads);
  const Graph part = part_of(graph, reads, segment.writes);
  const std::vector<std::int32_t> nodes = needed_nodes(part.data(), output_ids(part));
  if (std::ranges::count_if(nodes, [&](std::int32_t id) { return computes(part.node(id)); }) < 2 || !names_sizes(part)) return nullptr;
  Program program = lower(part, target(), true);
  if (!std::ranges::all_of(program.launches, is_one_kernel)) return nullptr;
  return std::unique_ptr<const FusedRegion>(new FusedRegion(std::move(program), std::move(reads), device));
}

FusedRegion::FusedRegion(Program program, std::vector<ValueId> reads, const mx::Device& device)
    : program_(std::move(program)), reads_(std::move(reads)) {
  std::vector<ValueId> read = output_ids(program_.graph);
  for (const Launch& launch : program_.launches) {
    functions_.push_back(function_of(launch.kernels[0]));
    read.insert(read.end(), launch.reads.begin(), launch.reads.end());
  }
  for (const ValueId v : read)
    if (const Array* const constant = constant_value(program_.graph.node(program_.root(v).node)))
      constants_.emplace(program_.root(v), array_of(*constant, device));
}

std::vector<std::int64_t> FusedRegion::positions(const Bindings& bindings) const {
  std::vector<std::int64_t> counts;
  for (const Launch& launch : program_.launches) {
    std::int64_t count = 1;
    for (const auto& [loop, step] : launch.kernels[0].text.grid) {
      const std::int64_t extent = launch.kernels[0].kernel.extent(loop).evaluate(bindings);
      count *= extent / step + (extent % step != 0);
    }
    counts.push_back(count);
  }
  return counts;
}

Arrays FusedRegion::by_kernels(const Arrays& inputs, const Bindings& bindings, const std::vector<std::int64_t>& positions) const {
  const Graph& graph = program_.graph;
  std::map<ValueId, mx::array> values;  // as kernels have them
  for (const auto& [v, constant] : constants_) values.emplace(v, as_kernels_read(constant, graph.type(v).dtype));
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Value input = graph.inputs()[i].second;
    values.emplace(input.id(), as_kernels_read(inputs[i], input.dtype()));
  }
  for (std::size_t i = 0; i < functions_.size(); ++i) {
    const Kernel& kernel = program_.launches[i].kernels[0].kernel;
    Arrays given;
    std::vector<ValueId> written;
    std::vector<mx::Shape> shapes;
    std::vector<mx::Dtype> types;
    for (const KernelBuffer& buffer : kernel.buffers) {
      if (!buffer.written) {
        given.push_back(values.at(program_.root(buffer.value)));
        continue;
      }
      written.push_back(buffer.value);
      shapes.push_back(shape_of({graph.type(buffer.value).size().evaluate(bindings)}));
      types.push_back(kernel_type(buffer.dtype));
    }
    std::vector<std::int64_t> sizes;
    for (const std::string& symbol : kernel.symbols) sizes.push_back(bindings.at(symbol));
    if (!sizes.empty()) given.emplace_back(sizes.begin(), shape_of({std::ssize(sizes)}));
    const int threads = static_cast<int>(positions[i]);
    const Arrays results =
        functions_[i](given, shapes, types, {threads, 1, 1}, {std::min(threads, group_threads), 1, 1}, {}, std::nullopt, false, {});
    for (std::size_t r = 0; r < results.size(); ++r) values.emplace(written[r], results[r]);
  }
  Arrays outputs;
  for (const auto& [name, value] : graph.outputs()) {
    const Type type = bind_sizes(value.type(), bindings);
    const mx::array bits = mx::reshape(values.at(program_.root(value.id())), shape_of(static_shape(type)));
    outputs.push_back(bits.dtype() == dtype_of(type.dtype) ? bits : mx::view(bits, dtype_of(type.dtype)));
  }
  return outputs;
}

Arrays FusedRegion::run(const Arrays& inputs, const Bindings& bindings, const std::function<Arrays()>& by_ops, bool measured) const {
  const std::vector<std::int64_t> counts = positions(bindings);
  constexpr std::int64_t most = std::numeric_limits<int>::max();
  if (std::ranges::any_of(counts, [](std::int64_t count) { return count == 0 || count > most; })) return by_ops();
  const auto kernels = [&] { return by_kernels(inputs, bindings, counts); };
  if (!measured) return kernels();
  const std::int64_t all = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
  const std::scoped_lock lock(measuring_);
  const int bits = std::bit_width(static_cast<std::uint64_t>(all));
  if (!faster_.contains(bits)) {
    mx::eval(inputs);
    mx::eval(by_ops());  // compiles
    mx::eval(kernels());
    const double seconds = fastest_seconds(budget, [&] { mx::eval(kernels()); });
    faster_[bits] = seconds < fastest_seconds(budget, [&] { mx::eval(by_ops()); });
  }
  return faster_.at(bits) ? kernels() : by_ops();
}

}  // namespace rlx::mlx
