#include "backends/mlx/library/taken_graph.h"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstdlib>
#include <cstring>

#include "base/names.h"
#include "ir/array_type.h"
#include "ir/graph_data.h"
#include "ir/rebuild.h"
#include "ir/reference.h"
#include "ir/sources.h"

namespace rlx::mlx {
namespace {

std::size_t at(std::int32_t node) { return static_cast<std::size_t>(node); }

bool is_empty(const Type& type, const Bindings& bindings) { return type.size().evaluate(bindings) == 0; }

std::vector<std::int64_t> sizes_of(const Type& type, const Bindings& bindings) { return static_shape(bind_sizes(type, bindings)); }

/// Functions that a graph keeps: each binding of its sizes has its own.
constexpr std::size_t most_compiled = 256;

/// What MLX throws says neither which device it was nor which op.
template <class Function>
auto named(std::string_view device, std::string_view what, const Function& function) {
  try {
    return function();
  } catch (const Error& error) {
    if (std::string_view(error.what()).starts_with(device)) throw;
    fail("{}: {}: {}", device, what, error.what());
  } catch (const InternalError&) {
    throw;
  } catch (const std::exception& error) {
    fail("{}: {}: {}", device, what, error.what());
  }
}

/// The streams of a device's runs. All are made before any of them computes: MLX looks them up without a lock while it computes. Its own of
/// each thread would be left behind by threads that end.
class StreamPool {
 public:
  static StreamPool& of(const mx::Device& device) {
    static StreamPool& cpu = *new StreamPool(mx::Device::cpu);
    static StreamPool& gpu = *new StreamPool(mx::Device::gpu);
    return device == mx::Device::cpu ? cpu : gpu;
  }
  /// Waits where all are in use.
  mx::Stream take() {
    std::unique_lock lock(mutex_);
    if (made_ == 0)
      for (; made_ < most; ++made_) free_.push_back(mx::new_thread_unsafe_stream(device_));
    returned_.wait(lock, [&] { return !free_.empty(); });
    const mx::Stream stream = free_.back();
    free_.pop_back();
    return stream;
  }
  void give_back(const mx::Stream& stream) {
    {
      const std::scoped_lock lock(mutex_);
      free_.push_back(stream);
    }
    returned_.notify_one();
  }

 private:
  static constexpr int most = 16;  // runs at a time

  explicit StreamPool(const mx::Device& device) : device_(device) {}

  mx::Device device_;
  std::mutex mutex_;
  std::condition_variable returned_;
  std::vector<mx::Stream> free_;
  int made_ = 0;
};

/// A stream for one run.
class StreamOfRun {
 public:
  explicit StreamOfRun(const mx::Device& device) : pool_(StreamPool::of(device)), stream_(pool_.take()) {
    mx::set_default_device(device);
    mx::set_default_stream(stream_);
  }
  StreamOfRun(const StreamOfRun&) = delete;
  StreamOfRun& operator=(const StreamOfRun&) = delete;
  ~StreamOfRun() { pool_.give_back(stream_); }

 private:
  StreamPool& pool_;
  mx::Stream stream_;
};

/// Results in memory of their own: what shows elements of an input would change with it.
Array apart_from(const TakenInputs& inputs, Array result) {
  const auto* const begin = result.bytes().data();
  const bool shares = std::ranges::any_of(inputs.arrays, [&](const Array* input) {
    return !shown_by(*input) && begin >= input->bytes().data() && begin < input->bytes().data() + input->bytes().size();
  });
  if (!shares) return result;
  Array own(result.dtype(), result.shape());
  std::memcpy(own.mutable_bytes().data(), begin, result.bytes().size());
  return own;
}

}  // namespace

Mode mode_of(const SessionOptions& options) {
  constexpr std::array<std::string_view, 5> names{"lazy", "eager", "compiled", "fused", "measured"};
  const char* const variable = std::getenv("RLX_MLX_MODE");
  const bool by_option = !options.graph_mode.empty();
  if (!by_option && !variable) return Mode::lazy;
  const std::string_view given = by_option ? std::string_view(options.graph_mode) : std::string_view(variable);
  const auto* const found = std::ranges::find(names, given);
  if (found == names.end())
    fail("{}: no mode {}{}", by_option ? "session: graph_mode" : "RLX_MLX_MODE", quote_name(given), near_or_allowed(given, names));
  return static_cast<Mode>(found - names.begin());
}

MlxGraph::MlxGraph(const Graph& taken, std::string device_name, const mx::Device& device, const SessionOptions& options, HostNode on_host)
    : TakenGraph(taken),
      mode_(mode_of(options)),
      unrolled_steps_(options.unrolled_steps),
      device_name_(std::move(device_name)),
      device_(device),
      on_host_(std::move(on_host)) {
  if (fuses()) named(device_name_, "session", [&] { FusedRegion::check(device_); });
  add_part(graph, false);
}

bool MlxGraph::computes(const Graph& of, const Node& node) const { return !left_to_host(of, node); }

std::optional<std::string> MlxGraph::left_to_host(const Graph& of, const Node& node) const {
  const Row<Rule>* const row = table().taking(of, node);
  if (!row) {
    const Row<Rule>* const listed = table().find(node.op->name);
    return std::string(listed ? listed->reason : "it has no row");
  }
  if (node.op->name == "reinterpret" || has_regions(node)) return std::nullopt;  // bytes are bytes, and regions have nodes of their own
  const auto lacks = [&](const Type& type) { return !has(type.dtype, device_); };
  for (const ValueId v : node.operands)
    if (lacks(of.type(v))) return fmt::format("MLX has no {} there", name(of.type(v).dtype));
  for (const Type& type : node.results)
    if (lacks(type)) return fmt::format("MLX has no {} there", name(type.dtype));
  return std::nullopt;
}

void MlxGraph::add_part(const Graph& of, bool region) {
  Part part;
  part.order = order_nodes(of, region);
  for (const NodeOrder::Step& step : part.order.steps) {
    const Node& node = of.node(step.node);
    part.rows.push_back(computes(of, node) ? table().taking(of, node) : nullptr);
    if (const Array* const constant = constant_value(node)) part.constants.emplace(step.node, array_of(*constant, device_));
    for (const Attr& attr : node.attrs)
      if (const auto* const inner = std::get_if<Region>(&attr); inner && *inner && !parts_.contains(inner->get())) add_part(**inner, true);
  }
  std::vector<bool> joins;
  for (const NodeOrder::Step& step : part.order.steps) {
    const Node& node = of.node(step.node);
    joins.push_back(fuses() ? constant_value(node) || FusedRegion::joins(of, node) : is_traced(of, node));
  }
  if (mode_ == Mode::compiled || fuses()) part.segments = cut_segments(of, part.order, joins);
  for (const Segment& segment : part.segments)
    part.fused.push_back(fuses() && segment.joined ? FusedRegion::of(of, part.order, segment, device_) : nullptr);
  parts_.emplace(&of, std::move(part));
}

bool MlxGraph::is_traced(const Graph& of, const Node& node) const {
  if (constant_value(node)) return true;
  if (!computes(of, node)) return false;
  if (!has_regions(node)) return true;
  if (node.op->name != "scan") return false;
  const Dim& length = NodeView{of, node, {}}.attr<Dims>("length")[0];
  const Graph& step = *NodeView{of, node, {}}.attr<Region>("step");
  return length.is_static() && length.value() <= unrolled_steps_ &&
         std::ranges::all_of(needed_nodes(step.data(), output_ids(step)),
                             [&](std::int32_t id) { return is_input(step.node(id)) || is_traced(step, step.node(id)); });
}

std::shared_ptr<const MlxGraph::Kept> MlxGraph::kept_for(const TakenInputs& inputs) {
  const std::scoped_lock lock(keeping_);
  if (kept_ && kept_->parameters == inputs.parameters) return kept_;
  auto kept = std::make_shared<Kept>();
  kept->parameters = inputs.parameters;
  for (std::size_t i = 0; i < inputs.arrays.size(); ++i)
    if (graph.inputs()[i].first.kind == InputKind::param) kept->inputs.emplace(i, array_of(*inputs.arrays[i], device_));
  Values values(graph.size());
  for (const auto& [i, array] : kept->inputs) values.of(graph.inputs()[i].second.id()) = array;
  const Part& part = parts_.at(&graph);
  walk(graph, part, values, {inputs.bindings, *kept}, true);
  const Arrays all = values.at(part.order.kept_values);
  mx::eval(all);
  for (std::size_t i = 0; i < all.size(); ++i) kept->values.emplace(part.order.kept_values[i], all[i]);
  return kept_ = kept;
}

MlxGraph::Values MlxGraph::input_values(const TakenInputs& inputs, const Kept& kept) const {
  Values values(graph.size());
  for (std::size_t i = 0; i < inputs.arrays.size(); ++i) {
    if (kept.inputs.contains(i)) continue;
    Results& value = values.of(graph.inputs()[i].second.id());
    mx::array* const shown = inputs.given_away[i] ? shown_by(*inputs.arrays[i]) : nullptr;
    if (shown) value = std::move(*shown);  // no one else has it: MLX may write over it
    else value = array_of(*inputs.arrays[i], device_);
  }
  place_kept(kept, values);
  return values;
}

void MlxGraph::place_kept(const Kept& kept, Values& values) const {
  for (const auto& [i, array] : kept.inputs) values.of(graph.inputs()[i].second.id()) = array;
  for (const auto& [id, array] : kept.values) values.set(graph, id, array);
}

void MlxGraph::walk(const Graph& of, const Part& part, Values& values, const Run& run, bool kept) const {
  if (!part.segments.empty() && !kept && !run.traced) {
    for (std::size_t i = 0; i < part.segments.size(); ++i) run_segment(of, part, i, values, run);
    return;
  }
  for (std::size_t i = 0; i < part.order.steps.size(); ++i)
    if (part.order.steps[i].kept == kept) walk_step(of, part, i, values, run);
}

void MlxGraph::walk_step(const Graph& of, const Part& part, std::size_t step, Values& values, const Run& run) const {
  const auto& [id, kept, ends] = part.order.steps[step];
  const Arrays operands = values.at(of.node(id).operands);
  if (!kept)
    for (const std::int32_t ended : ends) values[at(ended)].clear();
  values[at(id)] = compute(of, part, step, operands, run);
}

void MlxGraph::run_segment(const Graph& of, const Part& part, std::size_t number, Values& values, const Run& run) const {
  const Segment& segment = part.segments[number];
  const FusedRegion* const fused = part.fused[number].get();
  if (!segment.joined || (fuses() && !fused)) {
    for (const std::size_t step : segment.steps) walk_step(of, part, step, values, run);
    return;
  }
  const Arrays inputs = values.at(fused ? fused->reads() : segment.reads);
  for (const std::size_t step : segment.steps)
    for (const std::int32_t ended : part.order.steps[step].ends) values[at(ended)].clear();
  const Arrays results = fused ? fused->run(
                                     inputs, run.bindings, [&] { return by_ops(of, part, segment, inputs, run); }, mode_ == Mode::measured)
                               : (*compiled(of, part, segment, run))(inputs);
  for (std::size_t i = 0; i < results.size(); ++i) values.set(of, segment.writes[i], results[i]);
}

/// `inputs`: what it reads, and perhaps more behind that.
Arrays MlxGraph::by_ops(const Graph& of, const Part& part, const Segment& segment, const Arrays& inputs, const Run& run) const {
  Values values(of.size());
  if (&of == &graph) place_kept(run.kept, values);
  for (std::size_t i = 0; i < segment.reads.size(); ++i) values.set(of, segment.reads[i], inputs[i]);
  for (const std::size_t step : segment.steps) walk_step(of, part, step, values, run);
  return values.at(segment.writes);
}

/// What is kept is part of the function, which lives no longer.
std::shared_ptr<const MlxGraph::Compiled> MlxGraph::compiled(const Graph& of, const Part& part, const Segment& segment,
                                                             const Run& run) const {
  const std::scoped_lock lock(run.kept.making);
  if (run.kept.compiled.size() > most_compiled) run.kept.compiled.clear();
  std::shared_ptr<const Compiled>& known = run.kept.compiled[{&segment, run.bindings}];
  if (known) return known;
  const Compiled traced = [this, &of, &part, &segment, &kept = run.kept, bindings = run.bindings](const Arrays& inputs) {
    return by_ops(of, part, segment, inputs, {bindings, kept, true});
  };
  return known = std::make_shared<const Compiled>(mx::compile(traced));
}

Results MlxGraph::compute(const Graph& of, const Part& part, std::size_t step, std::span<const mx::array> operands, const Run& run) const {
  const std::int32_t id = part.order.steps[step].node;
  const Node& node = of.node(id);
  const Bindings& bindings = run.bindings;
  if (const auto constant = part.constants.find(id); constant != part.constants.end()) return constant->second;
  if (!part.rows[step]) return on_the_host(of, id, operands, bindings);
  if (!has_regions(node) && std::ranges::all_of(node.results, [&](const Type& type) { return is_empty(type, bindings); })) {
    Results nothing;
    for (const Type& type : node.results)
      nothing.push_back(mx::zeros(carried_shape(type.dtype, sizes_of(type, bindings)), dtype_of(type.dtype)));
    return nothing;
  }
  const RunInner inner = [&](const Region& region, std::vector<mx::array> given) { return run_region(region, std::move(given), run); };
  const Once once = [&](std::size_t operand, Results (*make)(const mx::array&)) {
    return made_once(of, id, operand, operands[operand], make, run.kept);
  };
  return named(device_name_, node.op->name, [&] {
    Results results = part.rows[step]->rule({{of, node, bindings}, operands, inner, once, run.traced});
    if (node.op->name != "broadcast")  // which takes no memory
      for (const mx::array& result : results) check_memory(result, device_);
    if (mode_ == Mode::eager) mx::eval(results);
    return results;
  });
}

Results MlxGraph::made_once(const Graph& of, std::int32_t node, std::size_t operand, const mx::array& from,
                            Results (*make)(const mx::array&), const Kept& kept) const {
  if (&of != &graph || !parts_.at(&graph).order.kept[at(of.node(node).operands[operand].node)]) return {};
  const std::scoped_lock lock(kept.making);
  const auto [made, is_new] = kept.made.try_emplace(node);
  if (is_new) made->second = make(from);
  return made->second;
}

Results MlxGraph::on_the_host(const Graph& of, std::int32_t node, std::span<const mx::array> operands, const Bindings& bindings) const {
  std::vector<mx::array> given;
  for (const mx::array& operand : operands) given.push_back(mx::contiguous(operand));
  mx::eval(given);
  std::vector<Array> arrays;
  for (std::size_t i = 0; i < given.size(); ++i) {
    const Type& type = of.type(of.node(node).operands[i]);
    arrays.push_back(array_from(given[i], type.dtype, sizes_of(type, bindings)));
  }
  Results results;
  for (const Array& array : on_host_(of, node, bindings, arrays)) results.push_back(array_of(array, device_));
  return results;
}

Results MlxGraph::run_region(const Region& region, std::vector<mx::array> operands, const Run& run) const {
  Values values(region->size());
  for (std::size_t i = 0; i < operands.size(); ++i) values.of(region->inputs()[i].second.id()) = operands[i];
  operands.clear();
  walk(*region, parts_.at(region.get()), values, run, false);
  return values.at(output_ids(*region));
}

std::vector<Array> MlxGraph::run(const TakenInputs& inputs) {
  const StreamOfRun on_device(device_);
  return named(device_name_, fmt::format("graph '{}'", graph.name()), [&] {
    std::vector<mx::array> outputs;
    {
      const std::shared_ptr<const Kept> kept = kept_for(inputs);
      Values values = input_values(inputs, *kept);
      walk(graph, parts_.at(&graph), values, {inputs.bindings, *kept}, false);
      for (const mx::array& output : values.at(output_ids(graph))) outputs.push_back(mx::contiguous(output));
    }
    mx::eval(outputs);
    std::vector<Array> results;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const Type& type = graph.outputs()[i].second.type();
      results.push_back(apart_from(inputs, array_from(outputs[i], type.dtype, sizes_of(type, inputs.bindings))));
    }
    return results;
  });
}

}  // namespace rlx::mlx
