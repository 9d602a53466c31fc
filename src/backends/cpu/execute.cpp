#include "backends/cpu/execute.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <numeric>

#include "backends/cpu/attention/run.h"
#include "backends/cpu/gemm/aligned_buffer.h"
#include "backends/cpu/quantized/run.h"
#include "backends/cpu/run_product.h"
#include "base/checked.h"
#include "ir/reference.h"

namespace rlx::cpu {

std::shared_ptr<const Panels> PackedWeights::find(const std::string& key) {
  const std::scoped_lock lock(mutex_);
  const auto it = entries_.find(key);
  if (it == entries_.end()) return nullptr;
  const auto is_gone = [](const Source& source) { return source.owner.expired(); };
  return std::ranges::any_of(it->second.sources, is_gone) ? nullptr : it->second.panels.lock();
}

void PackedWeights::add(const std::string& key, const std::shared_ptr<const Panels>& panels, const std::vector<Array>& origins) {
  Entry entry{panels, {}};
  for (const Array& origin : origins) entry.sources.push_back({origin.bytes().data(), origin.owner()});
  const std::scoped_lock lock(mutex_);
  std::erase_if(entries_, [](const auto& known) { return known.second.panels.expired(); });
  entries_[key] = std::move(entry);
}

void PackedWeights::forget(const Array& weights) {
  const std::scoped_lock lock(mutex_);
  std::erase_if(entries_, [&](const auto& entry) {
    return std::ranges::any_of(entry.second.sources, [&](const Source& source) { return source.bytes == weights.bytes().data(); });
  });
}

std::string panel_layout(const Step& step, CpuLevel level) {
  if (const auto* dot = std::get_if<BlockDot>(&step.launch->what))
    return fmt::format("{} blocks {} {} {} {}", static_cast<int>(level), dot->type, dot->matrices.value(), dot->columns.value(),
                       dot->depth.value());
  const auto& product = std::get<Product>(step.launch->what);
  const auto fixed = [](const Size& size) { return size(nullptr); };  // without symbols: see has_fixed_layout
  std::string text = fmt::format("{} {}{} {} {} {} {} {} {}", static_cast<int>(level), name(product.element),
                                 product.float_left ? " by f32" : "", fixed(step.offsets[1]), fixed(step.depth[0]), fixed(step.depth[2]),
                                 fixed(step.columns[0]), fixed(step.columns[1]), product.b_by_tables);
  if (step.winograd) text += " winograd";
  if (step.dots) text += " columns";
  for (const Step::Axis& axis : step.depth_axes) text += fmt::format(" {}*{}", fixed(axis[0]), fixed(axis[2]));
  return text;
}

namespace {

void prepare_kernel(Step& step, const GeneratedKernel& launch, SizeTable& sizes, const std::function<int(ValueId)>& slot_of) {
  const Kernel& kernel = launch.kernel;
  for (std::size_t i = 0; i < kernel.buffers.size(); ++i) {
    step.buffers.push_back(slot_of(kernel.buffers[i].value));
    step.starts.push_back(bytes_for(kernel.buffers[i].dtype, launch.first[i]));
  }
  const std::size_t outer = grid_loops(kernel);
  std::set<int> grid(kernel.loops.begin(), kernel.loops.begin() + static_cast<std::ptrdiff_t>(outer));
  for (std::size_t i = 0; i < outer; ++i) step.grid.push_back(sizes(kernel.extent(kernel.loops[i])));
  const auto free = free_variables(kernel);
  std::vector<std::pair<Dim, double>> work;
  for (std::size_t i = 0; i < kernel.exprs.size(); ++i) {
    Dim runs = 1;
    for (int v : free[i])
      if (!grid.count(v)) runs *= kernel.extent(v);
    for (int v : kernel.exprs[i].variables) runs *= kernel.extent(v);
    auto it = std::find_if(work.begin(), work.end(), [&](const auto& w) { return w.first == runs; });
    if (it == work.end()) work.emplace_back(runs, 1);
    else it->second += 1;
  }
  for (const auto& [runs, count] : work) step.work.emplace_back(sizes(runs), count);
}

/// Whether every run reads the same part of the right operand, so that it can be packed once.
bool has_fixed_layout(const Product& p) {
  std::vector<Dim> dims{p.columns.extent, p.columns.b_stride, p.depth.extent, p.depth.b_stride, p.b_offset};
  for (const ProductAxis& axis : p.depth_axes) dims.insert(dims.end(), {axis.extent, axis.b_stride});
  return std::all_of(dims.begin(), dims.end(), [](const Dim& dim) { return dim.is_static(); });
}

void prepare_product(Step& step, const Product& p, SizeTable& f, const std::function<int(ValueId)>& slot_of,
                     const std::function<bool(ValueId)>& is_weight) {
  step.a = p.prologue ? -1 : slot_of(p.a);
  step.b = slot_of(p.b);
  step.c = slot_of(p.result);
  step.weights = is_weight(p.b) && has_fixed_layout(p);
  const auto add = [&](const std::vector<ProductAxis>& axes, std::vector<Step::Axis>& to) {
    for (const ProductAxis& axis : axes) to.push_back({f(axis.extent), f(axis.a_stride), f(axis.b_stride), f(axis.c_stride)});
  };
  add(p.batch, step.batch);
  add(p.row_axes, step.row_axes);
  add(p.depth_axes, step.depth_axes);
  for (const ProductAxis& axis : p.batch) step.weights = step.weights && axis.b_stride == Dim(0);
  step.winograd = p.winograd && step.weights;
  const bool columns_lie_so = p.depth.b_stride == Dim(1);
  step.dots = p.dots && (columns_lie_so || step.weights);
  if (step.dots && columns_lie_so && p.columns.extent == Dim(1)) step.weights = false;  // several may share the sets of a cache as they lie
  step.rows = {f(p.rows.extent), f(p.rows.a_stride), f(p.rows.c_stride)};
  step.columns = {f(p.columns.extent), f(p.columns.b_stride), f(p.columns.c_stride)};
  step.depth = {f(p.depth.extent), f(p.depth.a_stride), f(p.depth.b_stride)};
  step.offsets = {f(p.a_offset), f(p.b_offset), f(p.c_offset)};
}

}  // namespace

std::vector<Step> make_steps(const Program& program, SizeTable& sizes, const std::function<int(ValueId)>& slot_of,
                             const std::function<bool(ValueId)>& is_weight, CpuLevel level) {
  std::vector<Step> steps;
  for (const Launch& launch : program.launches) {
    Step step;
    step.launch = &launch;
    if (const auto* kernel = std::get_if<GeneratedKernel>(&launch.what)) {
      prepare_kernel(step, *kernel, sizes, slot_of);
      for (const GeneratedKernel& edge : launch.edges) prepare_kernel(step.edges.emplace_back(), edge, sizes, slot_of);
    } else if (const auto* product = std::get_if<Product>(&launch.what)) {
      prepare_product(step, *product, sizes, slot_of, is_weight);
      const auto tile_buffers = [&](const std::optional<GeneratedKernel>& kernel, ValueId tile, bool written) {
        std::vector<int> slots;
        if (kernel)
          for (const KernelBuffer& b : kernel->kernel.buffers)
            slots.push_back(b.value == tile && b.written == written ? -1 : slot_of(b.value));
        return slots;
      };
      step.prologue_buffers = tile_buffers(product->prologue, product->a, true);
      step.buffers = tile_buffers(product->epilogue, product->dot, false);
    } else if (const auto* attention = std::get_if<Attention>(&launch.what)) {
      step.attention = prepare_attention(*attention, program, sizes, slot_of);
    } else if (const auto* update = std::get_if<StateUpdate>(&launch.what)) {
      step.c = slot_of(update->state);
      for (std::size_t i = 1; i < launch.reads.size(); ++i) step.operands.push_back(slot_of(launch.reads[i]));  // behind the state
      for (ValueId v : launch.reads) {
        std::vector<Size>& shape = step.shapes.emplace_back();
        for (const Dim& dim : program.graph.type(v).shape) shape.push_back(sizes(dim));
      }
    } else if (const auto* dot = std::get_if<BlockDot>(&launch.what)) {
      step.a = slot_of(dot->x), step.b = slot_of(dot->blocks), step.c = slot_of(dot->node);
      step.weights = is_weight(dot->blocks);
      step.block_kernel = dot->kernel(level);
      step.rows[0] = sizes(dot->rows);
      if (dot->experts) step.operands.push_back(slot_of(*dot->experts));
    } else {
      for (ValueId v : launch.reads) step.operands.push_back(slot_of(v));
      for (ValueId v : launch.writes) step.results.push_back(slot_of(v));
    }
    steps.push_back(std::move(step));
  }
  for (std::size_t i = 0; i < steps.size(); ++i) steps[i].joined = products_in_one_loop(std::span(steps).subspan(i));
  return steps;
}

std::byte* workspace(const RunState& run, std::size_t bytes) {
  if (run.scratch_bytes) *run.scratch_bytes = bytes;
  static thread_local std::size_t size = 0;
  static thread_local AlignedBuffer buffer;
  if (bytes > size) {
    buffer = AlignedBuffer();  // before the larger one is taken
    size = 0;
    buffer = AlignedBuffer(bytes);
    size = bytes;
  }
  return buffer.data();
}

namespace {

void run_kernel(const Step& step, const GeneratedKernel& launch, const RunState& run) {
  std::vector<void*> buffers;
  for (std::size_t i = 0; i < step.buffers.size(); ++i)
    buffers.push_back(run.memory[static_cast<std::size_t>(step.buffers[i])] + step.starts[i]);
  std::int64_t count = 1;
  for (const Size& extent : step.grid) count *= extent(run.sizes.data());
  double work = 0;
  for (const auto& [runs, operations] : step.work) work += static_cast<double>(runs(run.sizes.data())) * operations;
  constexpr double worth_a_thread = 32768;  // operations: a few microseconds
  auto grain = static_cast<std::int64_t>(std::max(1.0, worth_a_thread / std::max(1.0, work)));
  constexpr std::int64_t line = 64;  // elements: parts of a flat kernel then begin on a line of the caches, whatever the type
  if (grain > line) grain = (grain + line - 1) / line * line;
  run.pool->parallel_for(
      count, grain, [&](std::int64_t begin, std::int64_t end, int) { launch.function(buffers.data(), run.symbols.data(), begin, end); });
}

/// The windows of one update of a state.
class StateWriter {
 public:
  StateWriter(const Step& step, const StateUpdate& update, const RunState& run)
      : step_(step), run_(run), shape_(sizes(step.shapes[0])), width_(bytes_for(graph().type(update.state).dtype, 1)) {}

  void operator()(const StateUpdate::Window& window) {
    Window here{memory(), shape(), {}};
    ++next_;
    for (ValueId start : window.starts) {
      here.starts.push_back(integers(start).get_int(0));
      ++next_;
    }
    copy(std::span(&here, 1));
  }

  void operator()(const StateUpdate::Windows& windows) {
    const std::byte* const bytes = memory();
    const std::vector<std::int64_t> all = shape();
    ++next_;
    const Array starts = integers(windows.starts);
    ++next_;
    Window here{bytes, {all.begin() + 1, all.end()}, std::vector<std::int64_t>(shape_.size(), 0)};
    for (std::int64_t axis : windows.inserted) here.shape.insert(here.shape.begin() + axis, 1);
    const auto axes = static_cast<std::int64_t>(windows.axes.size());
    std::vector<Window> each(static_cast<std::size_t>(all[0]), here);
    for (std::int64_t row = 0; row < all[0]; ++row) {
      Window& window = each[static_cast<std::size_t>(row)];
      window.bytes += row * product_of(here.shape) * width_;
      for (std::int64_t i = 0; i < axes; ++i)
        window.starts[static_cast<std::size_t>(windows.axes[static_cast<std::size_t>(i)])] = starts.get_int(row * axes + i);
    }
    copy(each);
  }

 private:
  static std::int64_t product_of(const std::vector<std::int64_t>& shape) {
    return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
  }
  const Graph& graph() const { return run_.program->graph; }
  std::vector<std::int64_t> sizes(const std::vector<Size>& shape) const {
    std::vector<std::int64_t> all;
    for (const Size& extent : shape) all.push_back(extent(run_.sizes.data()));
    return all;
  }
  /// Of the next operand.
  std::vector<std::int64_t> shape() const { return sizes(step_.shapes[next_ + 1]); }
  const std::byte* memory() const { return run_.memory[static_cast<std::size_t>(step_.operands[next_])]; }
  Array integers(ValueId value) const {
    const DType dtype = graph().type(value).dtype;
    std::vector<std::int64_t> shape = this->shape();
    const auto bytes = static_cast<std::size_t>(bytes_for(dtype, product_of(shape)));
    return Array(dtype, std::move(shape), {memory(), bytes}, nullptr);
  }
  void copy(std::span<const Window> windows) const {
    copy_windows(windows, shape_, width_, run_.memory[static_cast<std::size_t>(step_.c)], *run_.pool);
  }

  const Step& step_;
  const RunState& run_;
  const std::vector<std::int64_t> shape_;
  const std::int64_t width_;
  std::size_t next_ = 0;  // of the step's operands
};

void run_state_update(const Step& step, const StateUpdate& update, const RunState& run) {
  StateWriter write(step, update, run);
  for (const auto& window : update.windows) std::visit(write, window);
}

std::vector<std::int64_t> sizes_of(const Type& type, const RunState& run) {
  std::vector<std::int64_t> shape;
  for (const Dim& d : bind_sizes(type, run.bindings).shape) shape.push_back(d.value());
  return shape;
}

void run_routine(const Step& step, const HostLaunch& launch, const RunState& run) {
  const Graph& graph = run.program->graph;
  const Node& node = graph.node(launch.node);
  std::vector<RoutineArray> operands, results;
  for (std::size_t i = 0; i < node.operands.size(); ++i) {
    const Type& type = graph.type(step.launch->reads[i]);
    operands.push_back({type.dtype, sizes_of(type, run), run.memory[static_cast<std::size_t>(step.operands[i])]});
  }
  for (std::size_t i = 0; i < node.results.size(); ++i)
    results.push_back({node.results[i].dtype, sizes_of(node.results[i], run), run.memory[static_cast<std::size_t>(step.results[i])]});
  launch.routine->run({node.attrs, operands, results, *run.pool, run.level, [&run](std::size_t bytes) { return workspace(run, bytes); }});
}

void run_host(const Step& step, const HostLaunch& launch, const RunState& run) {
  if (launch.routine) return run_routine(step, launch, run);
  const Graph& graph = run.program->graph;
  const Node& node = graph.node(launch.node);
  auto array_at = [&](const Type& type, int slot) {
    const std::int64_t count = bind_sizes(type, run.bindings).size().value();
    const auto bytes = static_cast<std::size_t>(bytes_for(type.dtype, count)), at = static_cast<std::size_t>(slot);
    return Array(type.dtype, sizes_of(type, run), {run.memory[at], bytes}, run.weights[at]);
  };
  std::vector<Array> operands;
  for (std::size_t i = 0; i < node.operands.size(); ++i) operands.push_back(array_at(graph.type(node.operands[i]), step.operands[i]));
  std::vector<std::byte*> places;
  for (int slot : step.results) places.push_back(run.memory[static_cast<std::size_t>(slot)]);
  if (launch.control && run.run_loop(node, operands, places)) return;
  const std::vector<Array> results = evaluate_node(graph, launch.node, run.bindings, operands, run.run_region);
  for (std::size_t i = 0; i < results.size(); ++i) std::memcpy(places[i], results[i].bytes().data(), results[i].bytes().size());
}

}  // namespace

void execute(const Step& step, const RunState& run) {
  if (std::holds_alternative<BlockDot>(step.launch->what)) return run_block_dots({&step, 1}, run);
  if (const auto* kernel = std::get_if<GeneratedKernel>(&step.launch->what)) {
    run_kernel(step, *kernel, run);
    for (std::size_t i = 0; i < step.edges.size(); ++i) run_kernel(step.edges[i], step.launch->edges[i], run);
    return;
  }
  if (const auto* host = std::get_if<HostLaunch>(&step.launch->what)) return run_host(step, *host, run);
  if (step.attention) return run_attention(*step.attention, run);
  if (const auto* update = std::get_if<StateUpdate>(&step.launch->what)) return run_state_update(step, *update, run);
  run_product(step, std::get<Product>(step.launch->what), run);
}

std::size_t execute_joined(std::span<const Step> steps, const RunState& run) {
  const std::size_t count = steps.front().joined;
  if (count == 1) execute(steps.front(), run);
  else run_block_dots(steps.first(count), run);
  return count;
}

}  // namespace rlx::cpu
